// Explanations against what they are about: enumerations, rejections, and changed specifications.
#include "syno/explain/explain.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/explain/equal_forms.h"
#include "syno/explain/why_not.h"
#include "syno/interp/random_graph.h"
#include "syno/key/key.h"
#include "syno/space/enumerate.h"
#include "syno/space/reasons.h"
#include "syno/space/step_order.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

SpecificationSource conv1d() {
  SpecificationSource source;
  source.input = "[N, I: unordered, H]";
  source.output = "[N, O: unordered, H]";
  source.primary = {"N: 0", "I: 2", "O: 2", "H: 0"};
  source.coefficient = {"k=3: 1", "s=2: 2"};
  source.bindings = {Binding({{"I", 4}, {"O", 8}, {"H", 8}}),
                     Binding({{"I", 8}, {"O", 8}, {"H", 12}})};
  source.passed_through = {{0, 0}};
  source.limits.max_depth = 4;
  return source;
}

// Merges, Splits and Shifts of ordered dimensions.
SpecificationSource plane() {
  SpecificationSource source;
  source.input = "[C_in, H]";
  source.output = "[C_out, H]";
  source.primary = {"C_in: 2", "C_out: 2", "H: 1"};
  source.coefficient = {"k=3: 1", "s=2: 2"};
  source.bindings = {Binding({{"C_in", 4}, {"C_out", 8}, {"H", 8}})};
  source.limits.max_depth = 4;
  source.limits.max_merges = 2;
  return source;
}

// One operator a key, or every structure.
std::vector<Operator> operators(const Specification& spec, const RuleSet& rules, bool keys = true) {
  EnumerateOptions options;
  options.keys = keys;
  options.rules = rules;
  options.max_nodes = 1'000'000;
  const Space space = enumerate_space(spec, options);
  EXPECT_TRUE(space.exhausted);
  std::vector<Operator> list;
  for (std::size_t i = 0; i < space.operators.size(); ++i) list.push_back(space.op(spec, i));
  return list;
}

TEST(StepOrder, EveryOrderBuildsTheSameOperator) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Operator op = random_operator(seed, {}).op;
    CounterRandom random(seed, 7);
    for (int repeat = 0; repeat < 3; ++repeat) {
      Graph graph = op.graph().root();
      StepOrder order(op.graph());
      while (!order.done()) {
        const std::vector<std::size_t> ready = order.ready();
        ASSERT_FALSE(ready.empty()) << "seed " << seed << "\n" << op.text();
        const std::size_t next = ready[random.below(ready.size())];
        order.take(next, graph.apply(order.translated(next, graph)));
      }
      std::vector<CoordinateId> match;
      for (const CoordinateId id : op.match()) match.push_back(order.now(id));
      EXPECT_EQ(Operator(graph, op.input(), match), op) << "seed " << seed << "\n" << op.text();
    }
  }
}

TEST(StepOrder, UndoGoesBack) {
  const Operator op = random_operator(5, {}).op;
  StepOrder order(op.graph());
  Graph graph = op.graph().root();
  const std::vector<std::size_t> first = order.ready();
  order.take(first.front(), graph.apply(order.translated(first.front(), graph)));
  order.undo(first.front());
  EXPECT_EQ(order.ready(), first);
  EXPECT_FALSE(order.done());
}

TEST(Explain, EveryListedOperatorHasAPathWithinItsBudgets) {
  const Specification spec(conv1d());
  const std::vector<Operator> list = operators(spec, RuleSet());
  ASSERT_GT(list.size(), 5U);
  for (const Operator& op : list) {
    const Explanation found = explain(op, spec, RuleSet());
    EXPECT_TRUE(found.enumerated()) << op.text() << found.path.obstacle;
    ASSERT_EQ(found.steps.size(), op.graph().steps().size());
    for (const ExplainedStep& step : found.steps) EXPECT_GE(step.children, 1) << op.text();
    for (const BudgetUse& use : found.usage.budgets) EXPECT_TRUE(use.within()) << op.text();
    for (const LimitUse& use : found.usage.limits)
      EXPECT_TRUE(use.within) << use.limit << "\n" << op.text();
    EXPECT_EQ(found.usage.macs, total_macs(op, spec));
    EXPECT_TRUE(found.usage.misfits.empty());
  }
}

TEST(Explain, OtherStepsOfTheOperatorAreRejectedByName) {
  const Specification spec(conv1d());
  int named = 0;
  for (const Operator& op : operators(spec, RuleSet())) {
    for (const ExplainedStep& step : explain(op, spec, RuleSet()).steps) {
      for (const RejectedStep& other : step.others) {
        EXPECT_FALSE(other.step.empty());
        EXPECT_NE(reason_info(other.reason).group, "other") << other.reason;
        ++named;
      }
    }
  }
  EXPECT_GT(named, 0);
}

TEST(Explain, OtherShapesAndUnknownVariablesAreMistakes) {
  const Specification spec(conv1d());
  const auto explained = [&](const char* text) {
    return explain(Operator::parse(text), spec, RuleSet());
  };
  EXPECT_THROW(explained("syno operator 1\nout [Q]\nin [Q]\nmatch o0\n"), UserError);
  EXPECT_THROW(explained("syno operator 1\nout [H]\nin [H]\nmatch o0\n"), UserError);
}

// Limits that are narrower than those a list was made under, sampled at random.
SpecificationSource narrowed(SpecificationSource source, CounterRandom& random) {
  Limits& limits = source.limits;
  const auto maybe = [&](auto& limit, auto value) {
    if (random.below(3) == 0) limit = value;
  };
  maybe(limits.max_depth, 3);
  maybe(limits.max_chain_length, 1);
  maybe(limits.max_weights, 1);
  maybe(limits.max_reductions, 1);
  maybe(limits.max_merges, 0);
  maybe(limits.max_splits, 0);
  maybe(limits.max_shifts, 0);
  maybe(limits.max_unfolds, 0);
  maybe(limits.element_wise_weights, false);
  maybe(limits.min_unfold_ratio, 3.5);
  maybe(limits.max_window, 2);
  maybe(limits.max_reduction_ratio, 0.4);
  maybe(limits.max_pooling, 1);
  maybe(limits.max_size_variables, 1);
  maybe(limits.max_size_power, 1);
  maybe(limits.min_weight_params, 20);
  maybe(limits.max_dropped, 4);
  maybe(limits.max_joined, 1);
  maybe(limits.max_macs, 4000);
  maybe(limits.min_params, 60);
  if (random.below(3) == 0) source.primary[1] = "I: 1";
  if (random.below(3) == 0) source.coefficient[1] = "s=2: 1";
  return source;
}

SpecificationSource wide() {
  SpecificationSource source = conv1d();
  source.limits.element_wise_weights = true;
  source.limits.max_joined = 100;
  return source;
}

TEST(Usage, IsBeyondTheSpecificationWhereTheSpecificationRefuses) {
  const std::vector<Operator> list = operators(Specification(wide()), RuleSet::restrictions());
  ASSERT_GT(list.size(), 20U);
  int rejected = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CounterRandom random(seed, 3);
    const Specification spec(narrowed(wide(), random));
    for (int sample = 0; sample < 10; ++sample) {
      const Operator& op = list[random.below(list.size())];
      const Usage found = usage(op, spec);
      bool beyond = false;
      for (const BudgetUse& use : found.budgets) beyond = beyond || !use.within();
      for (const LimitUse& use : found.limits) beyond = beyond || !use.within;
      EXPECT_EQ(beyond, !rejections(op, spec, RuleSet::none()).empty()) << "seed " << seed << "\n"
                                                                        << op.text();
      rejected += beyond ? 1 : 0;
    }
  }
  EXPECT_GT(rejected, 100);
}

TEST(WhyNot, TheChangesItNamesAdmitTheOperatorAndNoneIsToSpare) {
  const std::vector<Operator> list = operators(Specification(wide()), RuleSet());
  WhyNotOptions options;
  options.max_nodes = 0;
  int changed = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    CounterRandom random(seed, 4);
    const Specification spec(narrowed(wide(), random));
    for (int sample = 0; sample < 4; ++sample) {
      const Operator& op = list[random.below(list.size())];
      const WhyNot found = why_not(op, spec, RuleSet(), options);
      if (found.explanation.enumerated()) {
        EXPECT_TRUE(found.relaxations.empty());
        continue;
      }
      ASSERT_FALSE(found.relaxations.empty()) << "seed " << seed << "\n"
                                              << op.text() << found.no_relaxation;
      ++changed;
      const auto enumerated_under = [&](const std::vector<Relaxation>& changes) {
        return explain(op, relaxed(spec, changes), relaxed(RuleSet(), changes)).enumerated();
      };
      EXPECT_TRUE(enumerated_under(found.relaxations)) << "seed " << seed << "\n" << op.text();
      for (std::size_t i = 0; i < found.relaxations.size(); ++i) {
        std::vector<Relaxation> fewer = found.relaxations;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_FALSE(enumerated_under(fewer))
            << "seed " << seed << ": " << found.relaxations[i].name;
      }
    }
  }
  EXPECT_GT(changed, 20);
}

// What rules leave out has an equal form that is enumerated, and it is named.
TEST(WhyNot, NamesTheEqualOperatorThatIsKept) {
  for (const auto& [name, source] : {std::pair{"conv1d", conv1d()}, std::pair{"plane", plane()}}) {
    const Specification spec(source);
    const std::vector<Operator> raw = operators(spec, RuleSet::restrictions(), false);
    std::map<std::string, int> rules;
    int out = 0;
    int by_rewrite = 0;
    // Every fourth of a long list tells as much.
    for (std::size_t i = 0; i < raw.size(); i += raw.size() > 200 ? 4 : 1) {
      const Operator& op = raw[i];
      const Explanation explained = explain(op, spec, RuleSet());
      if (explained.enumerated()) continue;
      ++out;
      const WhyNot found = why_not(op, spec, RuleSet());
      ASSERT_TRUE(found.kept.has_value()) << name << "\n" << op.text() << explained.path.obstacle;
      EXPECT_EQ(found.admitted, !found.kept->near);
      EXPECT_EQ(found.kept->key == explained.key, !found.kept->near);
      EXPECT_TRUE(explain(found.kept->op, spec, RuleSet()).enumerated()) << found.kept->op.text();
      EXPECT_FALSE(found.kept->op == op);
      if (!found.kept->rules.empty()) ++by_rewrite;
      for (const std::string& rule : found.kept->rules) ++rules[rule];
    }
    std::printf(
        "%s: %zu structures; of those looked at %d are not listed, rules lead from %d to the "
        "kept one\n",
        name, raw.size(), out, by_rewrite);
    for (const auto& [rule, count] : rules) std::printf("  %s %d\n", rule.c_str(), count);
    EXPECT_GT(out, 20);
    EXPECT_GT(by_rewrite, out * 9 / 10);
  }
}

// Rows in blocks of 16, which Shifts, Splits, Merges and windows hardly touch.
SpecificationSource blocks() {
  SpecificationSource source;
  source.input = "[C_in, H]";
  source.output = "[C_out, H]";
  source.primary = {"C_in: 2", "C_out: 2", "H: 1"};
  source.coefficient = {"k=3: 1", "g=16: 2"};
  source.bindings = {Binding({{"C_in", 4}, {"C_out", 8}, {"H", 48}})};
  source.limits.max_depth = 5;
  source.limits.max_merges = 2;
  source.limits.max_shifts = 1;
  return source;
}

// Two windows, and cyclic shifts of rows.
SpecificationSource rows() {
  SpecificationSource source = conv1d();
  source.coefficient = {"k=3: 1", "j=5: 1"};
  source.bindings = {Binding({{"I", 4}, {"O", 8}, {"H", 24}})};
  source.limits.max_depth = 6;
  return source;
}

// What approximate rules leave out has a near-equal form that is enumerated; without them it is enumerated itself.
TEST(WhyNot, NamesTheNearEqualOperatorThatIsKept) {
  for (const auto& [name, source] : {std::pair{"blocks", blocks()}, std::pair{"rows", rows()}}) {
    const Specification spec(source);
    std::set<Hash128> kept;
    for (const Operator& op : operators(spec, RuleSet()))
      kept.insert(semantic_key(op.in_table(spec.variables()), spec.bindings()));
    const std::vector<Operator> all = operators(spec, RuleSet::exact());
    std::map<std::string, int> rules;
    std::size_t lost = 0;
    for (const Operator& op : all) {
      if (kept.contains(semantic_key(op.in_table(spec.variables()), spec.bindings()))) continue;
      ++lost;
      WhyNotOptions options;
      options.max_nodes = 0;
      const WhyNot found = why_not(op, spec, RuleSet(), options);
      ASSERT_TRUE(found.kept.has_value()) << name << "\n" << op.text();
      EXPECT_TRUE(found.kept->near);
      EXPECT_FALSE(found.admitted);
      EXPECT_TRUE(kept.contains(found.kept->key)) << found.kept->op.text();
      EXPECT_TRUE(explain(found.kept->op, spec, RuleSet()).enumerated());
      int approximate = 0;
      for (const std::string& rule : found.kept->rules) {
        if (reason_info(rule).subgroup == "approximate") ++rules[rule], ++approximate;
      }
      EXPECT_GE(approximate, 1);
      ASSERT_FALSE(found.relaxations.empty()) << op.text();
      for (const Relaxation& change : found.relaxations) EXPECT_EQ(change.to, "off");
    }
    EXPECT_EQ(kept.size() + lost, all.size()) << name << ": approximate rules add no operator";
    EXPECT_GT(lost, 5U) << name;
    std::printf("%s: of %zu operators %zu have a near-equal one alone\n", name, all.size(), lost);
    for (const auto& [rule, count] : rules) std::printf("  %s %d\n", rule.c_str(), count);
  }
}

TEST(WhyNot, SaysWhatNoChangeCanAdmit) {
  const Specification spec(conv1d());
  // It has no weight.
  const Operator op = Operator::parse(
      "syno operator 1\nout [N, O: unordered, H]\nin [N, I: unordered, H]\nreduce I -> i\n"
      "expand o1\nmatch o0 i o2\n");
  WhyNotOptions options;
  options.max_nodes = 100;
  const WhyNot found = why_not(op, spec, RuleSet(), options);
  EXPECT_FALSE(found.admitted);
  EXPECT_TRUE(found.relaxations.empty());
  EXPECT_NE(found.no_relaxation.find("weight"), std::string::npos) << found.no_relaxation;
}

TEST(WhyNot, LayersThatDoNotFitAreNamed) {
  SpecificationSource source = conv1d();
  source.bindings.push_back(Binding({{"I", 3}, {"O", 8}, {"H", 8}}));
  const Specification spec(std::move(source));
  const Operator op = Operator::parse(
      "syno operator 1\nout [N, O: unordered, H]\nin [N, I: unordered, H]\nreduce s -> q\n"
      "reduce s^-1*I -> i\ncontract o1:drop q:keep i:keep\nsplit i q -> c\nmatch o0 c o2\n");
  WhyNotOptions options;
  options.max_nodes = 0;
  const WhyNot found = why_not(op, spec, RuleSet::restrictions(), options);
  ASSERT_EQ(found.explanation.usage.misfits.size(), 1U);
  EXPECT_EQ(found.explanation.usage.misfits[0].size, "s^-1*I");
  ASSERT_EQ(found.relaxations.size(), 1U) << found.no_relaxation;
  EXPECT_EQ(found.relaxations[0].name, "min_fit");
  EXPECT_LT(std::stod(found.relaxations[0].to), 1);
}

}  // namespace
}  // namespace syno
