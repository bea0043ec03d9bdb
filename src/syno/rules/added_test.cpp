// Rules that a user adds: what is rejected, and that they are asked like those of the catalogue.
#include "syno/rules/added.h"

#include <gtest/gtest.h>

#include "syno/rules/docs.h"
#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

// No Shift of what an Unfold made.
AddedRule no_shift_of_window() {
  AddedRule rule;
  rule.id = "U1";
  rule.name = "no-shift-of-window";
  rule.doc = "no Shift of what an Unfold made\nWindows come last.";
  rule.steps = {Primitive::kShift};
  rule.matches = [](const RuleContext& c) {
    const Step* maker = c.graph.producer(c.step.in[0]);
    return maker != nullptr && maker->primitive == Primitive::kUnfold;
  };
  return rule;
}

// A Shift of a Reduce is none, as R15a says.
AddedRule no_shift_of_reduce() {
  AddedRule rule;
  rule.id = "U2";
  rule.name = "no-shift-of-reduce";
  rule.kind = RuleKind::kExact;
  rule.steps = {Primitive::kShift};
  rule.rewrite = [](const RuleContext& c) {
    return c.graph.is_reduction(c.step.in[0]) ? std::optional<Graph>(c.graph) : std::nullopt;
  };
  return rule;
}

constexpr const char* kShiftOfWindow =
    "reduce k -> r\ncontract o0:keep r:keep\nunfold o1 r -> c\nshift c 1 -> d";

const Rule* rejection(const RuleSet& rules, const char* lines) {
  const Specification spec(roomy());
  const Situation situation = read(spec, lines);
  return rules.rejecting_rule({spec, situation.graph, situation.step});
}

TEST(AddedRule, IsAskedLikeTheOthers) {
  RuleSet rules = RuleSet::none();
  EXPECT_EQ(rejection(rules, kShiftOfWindow), nullptr);
  rules.add(no_shift_of_window());
  rules.add(no_shift_of_reduce());
  ASSERT_NE(rejection(rules, kShiftOfWindow), nullptr);
  EXPECT_EQ(rejection(rules, kShiftOfWindow)->id, "U1");
  ASSERT_NE(rejection(rules, "reduce k -> r\nshift r 1 -> c"), nullptr);
  EXPECT_EQ(rejection(rules, "reduce k -> r\nshift r 1 -> c")->id, "U2");
  EXPECT_EQ(rejection(rules, "shift o1 1 -> c"), nullptr);
  EXPECT_EQ(rules.added().size(), 2U);
}

TEST(AddedRule, CanBeSwitchedAndCopied) {
  RuleSet rules = RuleSet::none();
  rules.add(no_shift_of_window());
  const RuleSet copy = rules;
  rules.set("no-shift-of-window", false);
  EXPECT_FALSE(rules.is_on("U1"));
  EXPECT_EQ(rejection(rules, kShiftOfWindow), nullptr);
  EXPECT_TRUE(copy.is_on("U1"));
  EXPECT_NE(rejection(copy, kShiftOfWindow), nullptr);
  rules.set("R6a", true);
  rules.set("U1", true);
  ASSERT_EQ(rules.rules().size(), 2U);
  EXPECT_EQ(rules.rules().back()->id, "U1") << "added rules are asked after the catalogue";
}

TEST(AddedRule, OutlivesTheSetItWasAddedTo) {
  RuleSet copy;
  {
    RuleSet rules = RuleSet::none();
    int asked = 0;
    AddedRule counting = no_shift_of_window();
    counting.matches = [asked](const RuleContext&) mutable { return ++asked > 1; };
    rules.add(counting);
    copy = rules;
  }
  EXPECT_EQ(rejection(copy, "shift o1 1 -> c"), nullptr);
  EXPECT_NE(rejection(copy, "shift o1 1 -> c"), nullptr);
}

// R15a under the guard: a restriction that the user adds counts for the other rules.
TEST(AddedRule, RestrictsWhatOtherRulesKeep) {
  const char* lines = "contract o0:drop o1:keep\nshift o1 1 -> c";
  RuleSet rules;
  ASSERT_NE(rejection(rules, lines), nullptr);
  EXPECT_EQ(rejection(rules, lines)->id, "R6a");
  AddedRule no_shifts;
  no_shifts.id = "U3";
  no_shifts.name = "no-weights-of-shifts";
  no_shifts.steps = {Primitive::kContraction};
  no_shifts.matches = [](const RuleContext& c) { return c.graph.count(Primitive::kShift) > 0; };
  rules.add(no_shifts);
  EXPECT_EQ(rejection(rules, lines), nullptr) << "what R6a keeps is left out";
}

TEST(AddedRule, ChangesTheVersion) {
  const RuleSet plain;
  RuleSet with = plain;
  with.add(no_shift_of_window());
  EXPECT_NE(with.version(), plain.version());
  const auto other = [&](const std::function<void(AddedRule&)>& change) {
    AddedRule rule = no_shift_of_window();
    change(rule);
    RuleSet rules;
    rules.add(rule);
    return rules.version() != with.version();
  };
  EXPECT_FALSE(other([](AddedRule&) {}));
  EXPECT_TRUE(other([](AddedRule& rule) { rule.id = "U9"; }));
  EXPECT_TRUE(other([](AddedRule& rule) { rule.name = "other"; }));
  EXPECT_TRUE(other([](AddedRule& rule) { rule.doc = "other"; }));
  EXPECT_TRUE(other([](AddedRule& rule) { rule.version = "2"; }));
  with.set("U1", false);
  EXPECT_EQ(with.version(), plain.version());
}

std::string error_of(const std::function<void(AddedRule&)>& change) {
  AddedRule rule = no_shift_of_window();
  change(rule);
  RuleSet rules;
  try {
    rules.add(rule);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(AddedRule, MistakesAreNamed) {
  EXPECT_EQ(error_of([](AddedRule& rule) { rule.id = "R6a"; }),
            "there is a rule 'R6a' already\n  in the rule 'R6a' that is added\n  expected: an id "
            "and a name that no other rule has      got: R6a view-above-share");
  EXPECT_NE(error_of([](AddedRule& rule) {
              rule.name = "view-above-share";
            }).find("there is a rule 'view-above-share' already\n  in the rule 'U1'"),
            std::string::npos);
  EXPECT_EQ(error_of([](AddedRule& rule) { rule.id = ""; }),
            "a rule has no id\n  expected: letters, digits, '-', '_' and '.', such as U1 or "
            "no-shift-after-unfold      got: nothing");
  EXPECT_EQ(error_of([](AddedRule& rule) { rule.name = ""; }).find("a rule has no name\n"), 0U);
  EXPECT_EQ(
      error_of([](AddedRule& rule) { rule.id = "U 1"; }).find("'U 1' cannot be the id of a rule\n"),
      0U);
  EXPECT_EQ(error_of([](AddedRule& rule) {
              rule.kind = RuleKind::kExact;
            }).find("rule 'U1 no-shift-of-window' is exact and has no rewrite\n"),
            0U);
  EXPECT_EQ(error_of([](AddedRule& rule) {
              rule.kind = RuleKind::kApproximate;
            }).find("rule 'U1 no-shift-of-window' is approximate and has no rewrite\n"),
            0U);
  EXPECT_EQ(error_of([](AddedRule& rule) {
              rule.rewrite = [](const RuleContext& c) { return c.graph; };
            }).find("rule 'U1 no-shift-of-window' is a restriction and has a rewrite\n"),
            0U);
  EXPECT_EQ(error_of([](AddedRule& rule) { rule.matches = nullptr; }),
            "rule 'U1 no-shift-of-window' is a restriction and does not say which steps match");
  RuleSet rules;
  rules.add(no_shift_of_window());
  EXPECT_THROW(rules.add(no_shift_of_window()), UserError);
  EXPECT_THROW(rules.set("U2", false), UserError);
}

TEST(AddedRule, MustKeepAGraphThatReadsTheSameSizes) {
  RuleSet rules = RuleSet::none();
  AddedRule wrong = no_shift_of_reduce();
  wrong.rewrite = [](const RuleContext& c) { return c.graph.root(); };
  rules.add(wrong);
  try {
    rejection(rules, "reduce k -> r\nshift r 1 -> c");
    FAIL();
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("rule 'U2 no-shift-of-reduce' keeps a graph that reads the data at other "
                        "sizes\n"),
              0U)
        << text;
    EXPECT_NE(text.find("expected: sizes [C, H, W, k]      got: [C, H, W]"), std::string::npos)
        << text;
  }
}

TEST(AddedRule, IsSummedUpByItsFirstLine) {
  RuleSet rules;
  rules.add(no_shift_of_window());
  AddedRule bare = no_shift_of_reduce();
  bare.doc = "";
  rules.add(bare);
  EXPECT_EQ(rule_summary(*rules.added()[0]), "no Shift of what an Unfold made");
  EXPECT_EQ(rule_summary(*rules.added()[1]), "no-shift-of-reduce");
  for (const Rule* rule : catalogue())
    EXPECT_EQ(rule_summary(*rule), rule_doc_parts(*rule).front().text);
}

}  // namespace
}  // namespace syno
