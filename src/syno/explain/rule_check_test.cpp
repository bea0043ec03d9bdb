#include "syno/explain/rule_check.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno {
namespace {

SpecificationSource small_plane() {
  SpecificationSource source;
  source.input = "[C, H]";
  source.output = "[C, H]";
  source.primary = {"C: 2", "H: 2"};
  source.coefficient = {"k=3: 2", "s=2: 2"};
  source.bindings = {Binding({{"C", 4}, {"H", 12}})};
  source.limits.max_merges = 2;
  source.limits.max_strides = 2;
  return source;
}

// A Shift is taken for nothing.
AddedRule no_shift(RuleKind kind) {
  AddedRule rule;
  rule.id = "U1";
  rule.name = "shift-is-nothing";
  rule.kind = kind;
  rule.steps = {Primitive::kShift};
  rule.rewrite = [](const RuleContext& c) { return c.graph; };
  return rule;
}

TEST(RuleCheck, FindsNoFaultInTheCatalogue) {
  const Specification spec(small_plane());
  RuleCheckOptions options;
  options.trials = 40;
  options.max_graphs = 400;
  std::int64_t compared = 0;
  for (const Rule* rule : catalogue()) {
    if (rule->kind != RuleKind::kExact) continue;
    const RuleCheck found = check_rule(spec, RuleSet(), rule->id, options);
    EXPECT_EQ(found.different, 0) << rule->id << "\n" << found.example->rejected;
    EXPECT_EQ(found.compared,
              found.equal_keys + found.equal_values + found.different + found.undecided);
    compared += found.compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(RuleCheck, FindsWhatAWrongRuleLoses) {
  const Specification spec(small_plane());
  RuleSet rules;
  rules.add(no_shift(RuleKind::kExact));
  RuleCheckOptions options;
  options.trials = 60;
  const RuleCheck found = check_rule(spec, rules, "shift-is-nothing", options);
  EXPECT_EQ(found.compared, 60);
  EXPECT_GT(found.different, 20);
  EXPECT_EQ(found.most_share, 1);
  ASSERT_TRUE(found.example);
  EXPECT_NE(found.example->rejected.find("shift"), std::string::npos) << found.example->rejected;
  // Shifts of Reduces really are nothing.
  EXPECT_GT(found.equal_keys, 0);
}

TEST(RuleCheck, CountsWhatARestrictionLeavesOut) {
  const RuleCheck found = check_rule(Specification(small_plane()), RuleSet(), "R9");
  EXPECT_EQ(found.compared, 100);
  EXPECT_GT(found.rejected, 100);
  ASSERT_TRUE(found.example);
  EXPECT_NE(found.example->rejected.find("unfold"), std::string::npos) << found.example->rejected;
  EXPECT_TRUE(found.example->kept.empty());
}

TEST(RuleCheck, EndsWhenItIsTold) {
  const RuleCheck found = check_rule(Specification(small_plane()), RuleSet(), "R6a", {},
                                     [](const RuleCheck& now) { return now.graphs < 8; });
  EXPECT_EQ(found.graphs, 8);
  EXPECT_THROW(check_rule(Specification(small_plane()), RuleSet(), "R0"), UserError);
}

}  // namespace
}  // namespace syno
