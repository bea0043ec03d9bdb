#include "syno/spec/ledger.h"

#include <gtest/gtest.h>

#include "syno/graph/operator.h"
#include "syno/spec/paper_operators_test.h"
#include "syno/spec/presets.h"
#include "syno/support/error.h"

namespace syno {
namespace {

TEST(Ledger, OperatorOneUsesTheBudgetsThatThePaperGives) {
  const Specification spec(preset("paper/resnet18"));
  const Ledger ledger =
      replay(spec, Operator::parse(kOperator1).in_table(spec.variables()).graph());
  const auto charged = [&](const char* name) {
    return ledger.charges[spec.variables()->index(name)];
  };
  EXPECT_EQ(charged("C_out"), 4);
  EXPECT_EQ(charged("C_in"), 2);
  EXPECT_EQ(charged("g"), 3);
  EXPECT_EQ(charged("k_1"), 2);
  EXPECT_EQ(ledger.depth, 10);
  EXPECT_EQ(ledger.fit, spec.full_fit());
}

TEST(Ledger, RejectionsNameTheStepAndTheReason) {
  SpecificationSource source = preset("paper/resnet18");
  source.primary[2] = "C_out: 3";
  const Specification spec(source);
  try {
    replay(spec, Operator::parse(kOperator1).in_table(spec.variables()).graph());
    FAIL();
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("a budget is exhausted; the step uses"), std::string::npos) << text;
    EXPECT_NE(text.find("(contract)"), std::string::npos) << text;
  }
}

TEST(Ledger, AStrideFactorIsAnIntegerUnderEveryBindingOfTheFit) {
  SpecificationSource source;
  source.input = "[C]";
  source.output = "[C, s]";
  source.primary = {"C: 2"};
  source.coefficient = {"s=2: 2"};
  source.bindings = {Binding({{"C", 4}}), Binding({{"C", 3}})};
  source.limits.max_strides = 1;
  source.limits.min_fit = 0.2;
  const auto stride = [](const Specification& spec) {
    return Step::stride(1, Size::parse("s^-1*C", *spec.variables()));
  };
  const Specification some(source);
  Ledger ledger = start_ledger(some);
  ASSERT_EQ(admit(some, Graph(some.variables(), some.output()), stride(some), ledger), "");
  EXPECT_EQ(ledger.fit, FitMask{1}) << "s times C/s is 3 under the second binding, but C/s is none";

  source.limits.min_fit = 1;
  const Specification all(source);
  const Graph graph(all.variables(), all.output());
  ledger = start_ledger(all);
  EXPECT_EQ(admit(all, graph, stride(all), ledger), reason::kFit);
  const std::string text = describe_rejection(all, graph, stride(all), reason::kFit);
  EXPECT_NE(text.find("the factor s^-1*C is not a positive integer under enough bindings"),
            std::string::npos)
      << text;
}

TEST(Ledger, SaysWhereASizeIsAnIntegerUnderNoBinding) {
  SpecificationSource source;
  source.input = "[C]";
  source.output = "[C]";
  source.primary = {"C: 2"};
  source.coefficient = {"s=2: 2"};
  source.bindings = {Binding({{"C", 5}}), Binding({{"C", 3}})};
  const Specification spec(source);
  const Graph graph(spec.variables(), spec.output());
  const Step step = Step::reduce(Size::parse("s^-1*C", *spec.variables()));
  Ledger ledger = start_ledger(spec);
  EXPECT_EQ(admit(spec, graph, step, ledger), reason::kFit);
  EXPECT_EQ(describe_rejection(spec, graph, step, reason::kFit),
            "cannot reduce over size s^-1*C: s^-1*C is a positive integer under no binding");
}

TEST(Ledger, MergeChargesThePowersItMakesUp) {
  const Specification spec(preset("paper/resnet18"));
  Graph graph(spec.variables(), spec.output());
  const auto charge = [&](const char* block, const char* variable) {
    const Step step = Step::merge(1, Size::parse(block, *spec.variables()));
    return step_charges(spec, graph, step)[spec.variables()->index(variable)];
  };
  // C_out into C_out/g and g: g is made up once in both parts.
  EXPECT_EQ(charge("g", "g"), 1);
  EXPECT_EQ(charge("g", "C_out"), 0);
  EXPECT_EQ(charge("g^-1*C_out", "g"), 1);
}

TEST(Ledger, EachLimitRefusesUnderItsOwnName) {
  SpecificationSource source = preset("paper/resnet18");
  const Specification spec(source);
  Graph graph(spec.variables(), spec.output());
  const CoordinateId window = graph.apply(Step::reduce(Size::parse("g", *spec.variables()))).out[0];
  const auto rejection = [&](const Step& step) {
    Ledger ledger = start_ledger(spec);
    const Reason why = admit(spec, graph, step, ledger);
    EXPECT_EQ(ledger, why.empty() ? ledger : start_ledger(spec));
    if (!why.empty()) {
      EXPECT_FALSE(describe_rejection(spec, graph, step, why).empty());
    }
    return why;
  };
  const auto size = [&](const char* text) { return Size::parse(text, *spec.variables()); };
  EXPECT_EQ(rejection(Step::shift(2, 2)), reason::kShiftAmount);
  EXPECT_EQ(rejection(Step::shift(0, 1)), reason::kPassedThrough);
  EXPECT_EQ(rejection(Step::expand(1)), reason::kCap);
  EXPECT_EQ(rejection(Step::unfold(2, window)), reason::kEvenWindow);
  EXPECT_EQ(rejection(Step::merge(1, size("H"))), reason::kBudget);
  EXPECT_EQ(rejection(Step::merge(1, size("C_in"))), reason::kIllegalSize);
  EXPECT_EQ(rejection(Step::merge(1, size("k_1"))), reason::kFit);
  EXPECT_EQ(rejection(Step::contract({{1, WeightRole::kKeep}})), reason::kElementWise);
  EXPECT_EQ(rejection(Step::contract({{1, WeightRole::kDrop}})), reason::kWeightParams);
  EXPECT_EQ(rejection(Step::contract({{1, WeightRole::kDrop}, {window, WeightRole::kKeep}})),
            reason::kNone);
  EXPECT_EQ(rejection(Step::stride(2, size("s"))), reason::kCap);
}

}  // namespace
}  // namespace syno
