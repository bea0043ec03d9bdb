// What rules guarantee, against definitions of its own: on random graphs, every step that would break a guarantee is
// rejected by the rule that gives it.
#include <array>
#include <gtest/gtest.h>
#include <map>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/growth_test.h"

namespace syno {
namespace {

using namespace growth;

constexpr std::array kGuarantees = {Guarantee::kPlainDrops,      Guarantee::kHeldWindows,
                                    Guarantee::kWholeReductions, Guarantee::kSeparateReductions,
                                    Guarantee::kSmallBlocks,     Guarantee::kFixedSizes};
static_assert(kGuarantees.size() == kGuaranteeCount);

std::vector<const Rule*> givers(Guarantee guarantee) {
  std::vector<const Rule*> rules;
  for (const Rule* rule : catalogue()) {
    if (rule->guarantees.holds(guarantee)) rules.push_back(rule);
  }
  return rules;
}

bool is_seen(const Graph& graph, CoordinateId id) {
  if (graph.weight_count(id) > 0) return true;
  const Step* step = graph.producer(id);
  if (step == nullptr) return false;
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate && is_seen(graph, in)) return true;
  }
  return false;
}

bool leaves_plainly(const Graph& graph, const WeightDim& dim) {
  if (dim.role == WeightRole::kKeep || graph.is_iterator(dim.coordinate)) return true;
  const Primitive maker = graph.producer(dim.coordinate)->primitive;
  if (maker != Primitive::kMerge && maker != Primitive::kReduce) return false;
  return dim.role == WeightRole::kJoin || !graph.reductions_only(dim.coordinate);
}

bool has_fixed_variable(const Specification& spec, const Size& size) {
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    if (spec.variable(v).primary && spec.variable(v).budget == 0 && size.power(v) != 0) return true;
  }
  return false;
}

bool is_dimension(const Specification& spec, const Size& size) {
  for (const Shape* shape : {&spec.input(), &spec.output()}) {
    for (const Dimension& dim : *shape) {
      if (dim.size == size) return true;
    }
  }
  return false;
}

bool breaks(Guarantee guarantee, const Specification& spec, const Graph& graph, const Step& step) {
  switch (guarantee) {
    case Guarantee::kPlainDrops:
      return std::any_of(step.dims.begin(), step.dims.end(),
                         [&](const WeightDim& dim) { return !leaves_plainly(graph, dim); });
    case Guarantee::kHeldWindows:
      return step.primitive == Primitive::kUnfold && graph.reductions_only(step.in[1]) &&
             !is_seen(graph, step.in[1]);
    case Guarantee::kWholeReductions:
      return step.primitive == Primitive::kMerge && graph.reductions_only(step.in[0]);
    case Guarantee::kSeparateReductions:
      return step.primitive == Primitive::kSplit && graph.is_reduction(step.in[0]) &&
             graph.is_reduction(step.in[1]) && graph.weight_count(step.in[0]) == 0 &&
             graph.weight_count(step.in[1]) == 0;
    case Guarantee::kSmallBlocks:
      if (step.primitive != Primitive::kMerge) return false;
      for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
        if (spec.variable(v).primary && step.size.power(v) != 0) return true;
      }
      return false;
    case Guarantee::kFixedSizes:
      if (step.primitive != Primitive::kMerge) return false;
      for (const Size& size : {step.size, graph.extent(step.in[0]) / step.size}) {
        if (has_fixed_variable(spec, size) && !is_dimension(spec, size)) return true;
      }
      return false;
  }
  return false;
}

TEST(Guarantees, EachIsGivenByOneRuleAndGoesWithIt) {
  for (const Guarantee guarantee : kGuarantees) {
    const std::vector<const Rule*> rules = givers(guarantee);
    ASSERT_EQ(rules.size(), 1U) << static_cast<int>(guarantee);
    EXPECT_TRUE(RuleSet().guarantees(guarantee));
    EXPECT_FALSE(RuleSet::none().guarantees(guarantee));
    RuleSet without;
    without.set(rules.front()->id, false);
    for (const Guarantee other : kGuarantees)
      EXPECT_EQ(without.guarantees(other), other != guarantee) << rules.front()->id;
    without.set(rules.front()->id, true);
    EXPECT_TRUE(without.guarantees(guarantee));
  }
}

TEST(Guarantees, ARuleThatIsAddedGivesNone) {
  RuleSet rules = RuleSet::none();
  AddedRule added;
  added.id = "U1";
  added.name = "everything";
  added.matches = [](const RuleContext&) { return true; };
  rules.add(added);
  for (const Guarantee guarantee : kGuarantees) EXPECT_FALSE(rules.guarantees(guarantee));
}

TEST(Guarantees, EveryStepThatWouldBreakOneIsRejected) {
  std::map<Guarantee, int> broken;
  for (const Space& space : spaces()) {
    const Specification spec(space.source);
    const Steps steps(spec, space.sizes);
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      grow(spec, steps, {}, seed, [&](const Graph& graph, const Ledger& ledger, const Step& step) {
        for (const Guarantee guarantee : kGuarantees) {
          if (broken[guarantee] >= 2000 || !breaks(guarantee, spec, graph, step)) continue;
          ++broken[guarantee];
          const Rule& rule = *givers(guarantee).front();
          EXPECT_TRUE(rejects(rule, {spec, graph, step, &ledger}))
              << rule.id << ", space '" << space.name << "', seed " << seed << "\n"
              << text_of(graph) << "step: " << step_text(graph, step);
        }
      });
    }
  }
  for (const Guarantee guarantee : kGuarantees)
    EXPECT_GE(broken[guarantee], 100) << givers(guarantee).front()->id;
}

}  // namespace
}  // namespace syno
