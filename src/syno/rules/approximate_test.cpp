// What the approximate rules lose, by brute force. Random graphs are built from steps that a specification admits. On top
// of each, every step that such a rule rejects is compared with what the rule keeps instead, output by output: an output
// differs when its terms do. The share that differs may not be above what the rule says.
#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/graph/canonical.h"
#include "syno/rules/growth_test.h"
#include "syno/rules/near.h"
#include "syno/support/checked.h"

namespace syno {
namespace {

using namespace growth;

constexpr int kNearFirings = 110;
constexpr std::int64_t kMost = 20'000;

std::vector<Space> wide_spaces() {
  std::vector<Space> list;
  SpecificationSource rows;
  rows.input = "[C, H]";
  rows.output = "[C, H]";
  rows.primary = {"C: 1", "H: 2"};
  rows.coefficient = {"s=2: 2", "k=3: 3", "j=5: 2", "l=7: 2", "g=16: 2"};
  rows.bindings = {Binding({{"C", 3}, {"H", 32}}), Binding({{"C", 2}, {"H", 96}})};
  rows.limits.max_depth = 8;
  rows.limits.max_merges = 2;
  rows.limits.max_strides = 1;
  rows.limits.element_wise_weights = true;
  rows.limits.min_unfold_ratio = 1;
  rows.limits.max_repeat = 16;
  list.push_back({"rows", rows, {"s", "k", "j", "l", "g", "g^-1*H"}});

  SpecificationSource sequence = rows;
  sequence.input = "[T, C]";
  sequence.output = "[T: causal, C: unordered]";
  sequence.primary = {"T: 2", "C: 1"};
  sequence.bindings = {Binding({{"T", 48}, {"C", 2}})};
  sequence.limits.negative_shifts = true;
  list.push_back({"sequence", sequence, {"s", "k", "j", "l", "g", "g^-1*T"}});
  return list;
}

using Term = std::vector<std::int64_t>;

// By output element: where its terms read the data, in the order of `order`, and the weights.
std::map<Term, std::vector<Term>> terms_by_output(const Graph& graph, const Values& values,
                                                  const std::vector<CoordinateId>& order) {
  std::vector<std::int64_t> extents;
  std::vector<std::size_t> free;
  for (std::size_t c = 0; c < graph.coordinates().size(); ++c) {
    const auto id = static_cast<CoordinateId>(c);
    extents.push_back(graph.extent(id).evaluate(values).value());
    if (graph.is_iterator(id) || graph.is_reduction(id)) free.push_back(c);
  }
  std::map<Term, std::vector<Term>> outputs;
  std::vector<std::int64_t> at(extents.size(), 0);
  const auto value = [&](CoordinateId id) -> std::int64_t& {
    return at[static_cast<std::size_t>(id)];
  };
  const auto extent = [&](CoordinateId id) { return extents[static_cast<std::size_t>(id)]; };
  const auto inside = [&] {
    for (const Step& step : graph.steps()) {
      const CoordinateId in = step.in[0];
      switch (step.primitive) {
        case Primitive::kSplit:
          value(step.out[0]) = extent(step.in[1]) * value(in) + value(step.in[1]);
          break;
        case Primitive::kMerge:
          value(step.out[0]) = value(in) / extent(step.out[1]);
          value(step.out[1]) = value(in) % extent(step.out[1]);
          break;
        case Primitive::kShift:
          value(step.out[0]) = floor_modulo(value(in) + step.amount, extent(in));
          break;
        case Primitive::kUnfold: {
          const std::int64_t window = extent(step.in[1]);
          const std::int64_t place =
              value(in) + value(step.in[1]) - (step.causal ? window - 1 : window / 2);
          if (place < 0 || place >= extent(in)) return false;
          value(step.out[0]) = place;
          break;
        }
        case Primitive::kStride:
          value(step.out[0]) = value(in) * (extent(step.out[0]) / extent(in));
          break;
        case Primitive::kExpand:
        case Primitive::kReduce:
        case Primitive::kContraction: break;
      }
    }
    return true;
  };
  while (true) {
    Term output;
    for (std::size_t d = 0; d < graph.output().size(); ++d) output.push_back(at[d]);
    std::vector<Term>& terms = outputs[output];
    if (inside()) {
      Term term;
      for (const CoordinateId id : order) term.push_back(value(id));
      for (const Weight& weight : graph.weights()) {
        for (const CoordinateId id : weight.dims) term.push_back(value(id));
      }
      terms.push_back(std::move(term));
    }
    std::size_t i = 0;
    while (i < free.size() && ++at[free[i]] == extents[free[i]]) at[free[i++]] = 0;
    if (i == free.size()) break;
  }
  for (auto& [output, terms] : outputs) std::sort(terms.begin(), terms.end());
  return outputs;
}

// The share of the outputs that differ, for the order of the kept graph's frontier under which that is least.
double differing(const Graph& rejected, const Graph& kept, const Values& values) {
  const std::vector<CoordinateId> wanted(rejected.frontier().begin(), rejected.frontier().end());
  const auto expected = terms_by_output(rejected, values, wanted);
  std::vector<CoordinateId> order(kept.frontier().begin(), kept.frontier().end());
  double least = 1;
  do {
    bool fits = order.size() == wanted.size();
    for (std::size_t d = 0; d < order.size() && fits; ++d)
      fits = kept.extent(order[d]) == rejected.extent(wanted[d]);
    if (!fits) continue;
    const auto found = terms_by_output(kept, values, order);
    std::size_t differ = 0;
    for (const auto& [output, terms] : expected) differ += found.at(output) != terms;
    least = std::min(least, static_cast<double>(differ) / static_cast<double>(expected.size()));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// Grows a random graph of views, windows above all, and calls visit(graph, ledger, step) for every view that may follow.
void grow_views(const Specification& spec, const Steps& steps, const Restrictions& restrictions,
                std::uint64_t seed, const Visit& visit) {
  CounterRandom random(seed, 0);
  Graph graph(spec.variables(), spec.output());
  Ledger ledger = start_ledger(spec);
  for (int tries = 0; tries < 30 && graph.depth() < 6; ++tries) {
    std::map<Primitive, std::vector<Step>> admitted;
    for (const Step& step : steps.views(graph, graph.depth() < 3)) {
      if (restricted(restrictions, {spec, graph, step}) != nullptr) continue;
      Ledger next = ledger;
      if (!admit(spec, graph, step, next).empty()) continue;
      Graph longer = graph;
      longer.apply(step);
      if (!small_enough(spec, longer, next.fit, kMost)) continue;
      admitted[step.primitive].push_back(step);
      if (graph.depth() > 1) visit(graph, ledger, step);
    }
    for (int i = 0; i < 6; ++i) {
      const auto step = Steps::contraction(graph, random);
      if (!step) continue;
      Ledger next = ledger;
      if (restricted(restrictions, {spec, graph, *step}) == nullptr &&
          admit(spec, graph, *step, next).empty())
        admitted[Primitive::kContraction].push_back(*step);
    }
    // Reductions first: they are the windows. Then a weight that holds them, which R9 asks for.
    const bool reduces = graph.depth() < 2;
    Primitive wanted = static_cast<Primitive>(random.below(kPrimitiveCount));
    if (random.below(2) == 0) wanted = Primitive::kUnfold;
    if (reduces) wanted = Primitive::kReduce;
    if (graph.depth() == 2 && !restrictions.empty()) wanted = Primitive::kContraction;
    std::vector<Step>& choice = admitted[wanted];
    // Odd ones are windows, and windows of Reduces the rule.
    if (reduces) {
      std::erase_if(choice, [&](const Step& step) {
        return step.size.evaluate(spec.bindings()[0]).value() % 2 == 0 ||
               (graph.depth() > 0 && step.size == graph.steps()[0].size);
      });
    }
    if (wanted == Primitive::kUnfold && random.below(4) > 0)
      std::erase_if(choice, [&](const Step& step) { return !graph.is_reduction(step.in[1]); });
    if (choice.empty() || wanted == Primitive::kExpand || wanted == Primitive::kStride) continue;
    const Step step = choice[random.below(choice.size())];
    admit(spec, graph, step, ledger);
    graph.apply(step);
  }
}

struct Measured {
  int firings = 0;
  double most = 0;
  double sum = 0;
  double limit = 0;
};

TEST(ApproximateRules, DifferOnNoMoreOutputsThanTheySay) {
  std::map<const Rule*, Measured> all;
  for (const Space& space : wide_spaces()) {
    const Specification spec(space.source);
    const Steps steps(spec, space.sizes);
    std::set<std::pair<const Rule*, Hash128>> seen;
    std::map<const Rule*, int> here;
    for (std::uint64_t seed = 1; seed <= 2500; ++seed) {
      const Restrictions restrictions =
          seed % 2 == 0 ? RuleSet::restrictions().rules() : Restrictions();
      grow_views(spec, steps, restrictions, seed,
                 [&](const Graph& graph, const Ledger& ledger, const Step& step) {
                   for (const Rule* rule : catalogue()) {
                     if (rule->kind != RuleKind::kApproximate || here[rule] >= kNearFirings)
                       continue;
                     const RuleContext context{spec, graph, step, &ledger};
                     if (!rejects(*rule, context, restrictions)) continue;
                     Graph rejected = graph;
                     rejected.apply(step);
                     if (!seen.insert({rule, structure_hash(rejected)}).second) continue;
                     const Graph kept = rule->rewrite(context).value();
                     Measured& measured = all[rule];
                     ++measured.firings;
                     ++here[rule];
                     double most = 0;
                     for (const Values& values : spec.bindings()) {
                       if (terms(rejected, values, kMost) > kMost) continue;
                       const double share = differing(rejected, kept, values);
                       const double limit = rule->share(context, values);
                       EXPECT_LE(share, limit + 1e-12)
                           << rule->id << " in space '" << space.name << "', seed " << seed << "\n"
                           << text_of(rejected) << "kept " << text_of(kept);
                       most = std::max(most, share);
                       measured.limit = std::max(measured.limit, limit);
                     }
                     measured.most = std::max(measured.most, most);
                     measured.sum += most;
                     EXPECT_GT(measured.limit, 0) << rule->id;
                   }
                 });
    }
  }
  for (const Rule* rule : catalogue()) {
    if (rule->kind != RuleKind::kApproximate) continue;
    const Measured& measured = all[rule];
    std::printf(
        "%-5s %4d firings, of the outputs %.3f differ on average, %.3f at most (limit %.3f)\n",
        std::string(rule->id).c_str(), measured.firings,
        measured.sum / std::max(1, measured.firings), measured.most, measured.limit);
    EXPECT_GE(measured.firings, 100) << rule->id;
    EXPECT_GT(measured.most, 0) << rule->id << " loses nothing: it is exact";
    EXPECT_NE(rule->share, nullptr);
  }
}

// The limit falls with the sizes of a dimension that grows, and stays with the block where that does not.
TEST(ApproximateRules, AreNearOnlyWhereTheShareIsSmallOrVanishes) {
  const Specification spec(wide_spaces().front().source);
  Graph graph(spec.variables(), spec.output());
  const auto size = [&](const char* text) { return Size::parse(text, *spec.variables()); };
  const CoordinateId window = graph.apply(Step::reduce(size("k"))).out[0];
  const CoordinateId rows = graph.frontier()[1];
  Values values = spec.bindings()[0];
  EXPECT_DOUBLE_EQ(hit_share(graph, rows, 3, 32, values), 3.0 / 32);
  EXPECT_DOUBLE_EQ(hit_share(graph, rows, 1, 16, values), 1.0 / 16);
  EXPECT_DOUBLE_EQ(hit_share(graph, window, 1, 3, values), 1);
  const Step merged = graph.apply(Step::merge(rows, size("g")));
  EXPECT_DOUBLE_EQ(hit_share(graph, merged.out[0], 1, 2, values), 0.5);
  EXPECT_DOUBLE_EQ(hit_share(graph, merged.out[1], 2, 16, values), 2.0 / 16);
  const Step joined = graph.apply(Step::split(merged.out[0], window));
  EXPECT_DOUBLE_EQ(hit_share(graph, joined.out[0], 1, 6, values), 0.5);
  EXPECT_DOUBLE_EQ(hit_share(graph, joined.out[0], 1, 3, values), 1) << "every output has all";
}

}  // namespace
}  // namespace syno
