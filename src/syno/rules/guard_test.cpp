// The general guard against its definition: both graphs replayed step by step, everything compared anew.
#include <gtest/gtest.h>
#include <iostream>
#include <map>

#include "syno/graph/canonical.h"
#include "syno/rules/growth_test.h"

namespace syno {
namespace {

using namespace growth;

std::optional<Ledger> try_replay(const Specification& spec, const Graph& graph,
                                 const Restrictions& restrictions) {
  Ledger ledger = start_ledger(spec);
  Graph prefix(graph.variables(), graph.output());
  for (const Step& step : graph.steps()) {
    if (!admit(spec, prefix, step, ledger).empty()) return std::nullopt;
    if (restricted(restrictions, {spec, prefix, step}) != nullptr) return std::nullopt;
    prefix.apply(step);
  }
  return ledger;
}

// A budget counts where some later step could charge it, and a cap where some step can follow at all.
bool no_more(const Specification& spec, const Ledger& kept, const Ledger& rejected) {
  const Limits& limits = spec.limits();
  const bool more = rejected.depth < limits.max_depth;
  const auto count = [&](Primitive p) { return rejected.counts[static_cast<std::size_t>(p)]; };
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    const bool merges = more && count(Primitive::kMerge) < limits.max_merges;
    const bool strides = more && count(Primitive::kStride) < limits.max_strides;
    const bool shares =
        more && count(Primitive::kContraction) < limits.max_weights && spec.variable(v).primary;
    if ((merges || strides || shares) && kept.charges[v] > rejected.charges[v]) return false;
  }
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    if (more && static_cast<Primitive>(p) != Primitive::kReduce &&
        kept.counts[p] > rejected.counts[p])
      return false;
  }
  return kept.depth <= rejected.depth && (rejected.fit & ~kept.fit) == 0;
}

// How a coordinate is computed, down to iterators and reductions.
std::string expression(const Graph& graph, CoordinateId id) {
  const Coordinate& coordinate = graph.coordinate(id);
  std::string text =
      std::to_string(coordinate.index) + ":" + coordinate.extent.text(*graph.variables());
  if (const Step* step = graph.producer(id)) {
    text += std::string(primitive_info(step->primitive).name) + std::to_string(step->amount) +
            (step->causal ? "causal" : "") + "(";
    for (const CoordinateId in : step->in) {
      if (in != kNoCoordinate) text += expression(graph, in) + ",";
    }
    text += ")";
  }
  return text;
}

int chain_of(const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  if (step == nullptr || step->primitive == Primitive::kReduce) return 0;
  int longest = 0;
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate) longest = std::max(longest, chain_of(graph, in));
  }
  return longest + 1;
}

std::vector<CoordinateId> of_its_own(const Graph& graph, const Graph& other) {
  std::map<std::string, int> common;
  for (const CoordinateId id : other.frontier()) ++common[expression(other, id)];
  std::vector<CoordinateId> own;
  for (const CoordinateId id : graph.frontier()) {
    if (common[expression(graph, id)]-- <= 0) own.push_back(id);
  }
  return own;
}

bool no_longer(const Specification& spec, const Graph& kept, const Graph& rejected) {
  const auto left = static_cast<int>(spec.limits().max_depth) - rejected.depth();
  for (const CoordinateId id : of_its_own(kept, rejected)) {
    if (chain_of(kept, id) + left <= spec.limits().max_chain_length) continue;
    for (const CoordinateId other : of_its_own(rejected, kept)) {
      if (rejected.extent(other) == kept.extent(id) &&
          chain_of(rejected, other) < chain_of(kept, id))
        return false;
    }
  }
  return true;
}

bool rejects_by_definition(const Rule& rule, const RuleContext& context,
                           const Restrictions& restrictions) {
  if (!rule.matches(context)) return false;
  if (rule.kind == RuleKind::kRestriction) return true;
  const std::optional<Graph> kept = rule.rewrite(context);
  if (!kept) return false;
  Graph rejected = context.graph;
  rejected.apply(context.step);
  const std::optional<Ledger> rejected_ledger = try_replay(context.spec, rejected, {});
  if (!rejected_ledger) return false;
  const std::optional<Ledger> kept_ledger = try_replay(context.spec, *kept, restrictions);
  return kept_ledger && no_more(context.spec, *kept_ledger, *rejected_ledger) &&
         no_longer(context.spec, *kept, rejected);
}

TEST(Guard, DecidesAsItsDefinition) {
  std::map<bool, int> verdicts;
  for (const Space& space : spaces()) {
    const Specification spec(space.source);
    const Steps steps(spec, space.sizes);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const Restrictions restrictions =
          seed % 2 == 0 ? RuleSet::restrictions().rules() : Restrictions();
      grow(spec, steps, restrictions, seed,
           [&](const Graph& graph, const Ledger& ledger, const Step& step) {
             if (testing::Test::HasFailure()) return;
             Ledger after = ledger;
             admit(spec, graph, step, after);
             for (const Rule* rule : catalogue()) {
               if (!rule->steps.holds(step.primitive)) continue;
               const bool wanted = rejects_by_definition(*rule, {spec, graph, step}, restrictions);
               ++verdicts[wanted];
               const auto same = [&](const RuleContext& context) {
                 return rejects(*rule, context, restrictions) == wanted;
               };
               EXPECT_TRUE(same({spec, graph, step}) && same({spec, graph, step, &ledger}) &&
                           same({spec, graph, step, &ledger, &after}))
                   << rule->id << " in space '" << space.name << "', seed " << seed << "\n"
                   << text_of(graph) << step_text(graph, step) << "by definition "
                   << (wanted ? "rejected" : "not rejected");
             }
           });
    }
  }
  EXPECT_GT(verdicts[true], 2000);
  EXPECT_GT(verdicts[false], 2000);
}

// A rule is not asked about other steps than those it names, so it must not match them.
TEST(Rules, MatchNoStepThatTheyDoNotName) {
  for (const Space& space : spaces()) {
    const Specification spec(space.source);
    const Steps steps(spec, space.sizes);
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      grow(spec, steps, {}, seed, [&](const Graph& graph, const Ledger&, const Step& step) {
        for (const Rule* rule : catalogue()) {
          if (rule->steps.holds(step.primitive)) continue;
          EXPECT_FALSE(rule->matches({spec, graph, step})) << rule->id << "\n" << text_of(graph);
        }
      });
    }
  }
}

// The steps of `kept` are those of graph and step in the same order, some of them left out, and no other coordinate
// takes part in them.
bool is_without_steps(const Graph& kept, const Graph& whole) {
  std::vector<CoordinateId> to(whole.coordinates().size(), kNoCoordinate);
  for (std::size_t d = 0; d < whole.output().size(); ++d) to[d] = static_cast<CoordinateId>(d);
  std::size_t at = 0;
  for (const Step& step : whole.steps()) {
    if (at == kept.steps().size()) return true;
    Step there = step;
    for (CoordinateId& id : there.in)
      id = id == kNoCoordinate ? id : to[static_cast<std::size_t>(id)];
    for (WeightDim& dim : there.dims) dim.coordinate = to[static_cast<std::size_t>(dim.coordinate)];
    there.out = kept.steps()[at].out;
    if (!(there == kept.steps()[at])) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (step.out[i] != kNoCoordinate) to[static_cast<std::size_t>(step.out[i])] = there.out[i];
    }
    ++at;
  }
  return at == kept.steps().size();
}

TEST(Rules, ThatDropStepsKeepTheRestAsItIs) {
  std::map<const Rule*, int> met;
  for (const Space& space : spaces()) {
    const Specification spec(space.source);
    const Steps steps(spec, space.sizes);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      grow(spec, steps, {}, seed, [&](const Graph& graph, const Ledger&, const Step& step) {
        for (const Rule* rule : catalogue()) {
          if (!rule->drops_steps || !rule->steps.holds(step.primitive) ||
              !rule->matches({spec, graph, step}))
            continue;
          ++met[rule];
          Graph whole = graph;
          whole.apply(step);
          const std::optional<Graph> kept = rule->rewrite({spec, graph, step});
          ASSERT_TRUE(kept) << rule->id;
          EXPECT_LT(kept->depth(), whole.depth()) << rule->id;
          EXPECT_TRUE(is_without_steps(*kept, whole)) << rule->id << "\n" << text_of(whole);
        }
      });
    }
  }
  for (const Rule* rule : catalogue()) {
    if (rule->drops_steps) {
      EXPECT_GE(met[rule], 50) << rule->id;
    }
  }
}

}  // namespace
}  // namespace syno
