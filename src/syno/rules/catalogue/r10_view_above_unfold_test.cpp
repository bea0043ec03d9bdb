#include "syno/rules/near.h"
#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

// Blocks of g = 24 and windows of k = 3.
SpecificationSource blocks() {
  SpecificationSource source = roomy();
  source.coefficient = {"k=3: 4", "s=2: 4", "g=24: 2"};
  source.bindings = {Binding({{"C", 24}, {"H", 48}, {"W", 12}})};
  source.limits.min_unfold_ratio = 1;
  return source;
}

TEST(ShiftAboveUnfold, StandsBelow) {
  const Specification spec(roomy());
  const char* lines = "reduce k -> r\ncontract o0:drop r:keep\nunfold o1 r -> c\nshift c 1 -> d";
  EXPECT_TRUE(rejected(kShiftAboveUnfold, spec, lines));
  EXPECT_TRUE(keeps(kShiftAboveUnfold, spec, lines,
                    "reduce k -> r\ncontract o0:drop r:keep\nshift o1 1 -> c\nunfold c r -> d"));
  EXPECT_FALSE(
      rejected(kShiftAboveUnfold, spec,
               "reduce k -> r\ncontract o0:drop r:keep\nshift o1 1 -> c\nunfold c r -> d"));
}

TEST(ShiftAboveUnfold, LeavesAloneWhatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kShiftAboveUnfold, spec,
               "reduce k -> r\nunfold o1 r -> c\ncontract o0:drop c:keep\nshift c 1 -> d"));
}

// Every output has terms at the ends of a Reduce, so none would be equal.
TEST(ShiftAboveUnfold, NeedsPositionsOfTheOutput) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kShiftAboveUnfold, spec,
                        "reduce k -> r\nreduce H -> t\ncontract o0:drop r:keep t:keep\n"
                        "unfold t r -> c\nshift c 1 -> d"));
}

TEST(ShiftAboveUnfold, SaysWhatShareDiffers) {
  const Specification spec(roomy());
  const Situation situation =
      read(spec, "reduce k -> r\ncontract o0:drop r:keep\nunfold o1 r -> c\nshift c 1 -> d");
  const RuleContext context{spec, situation.graph, situation.step};
  // H = 12, K = 3: from the last two positions and the first one.
  EXPECT_DOUBLE_EQ(kShiftAboveUnfold.share(context, spec.bindings()[0]), 3.0 / 12);
}

TEST(SplitAboveUnfold, StandsBelow) {
  const Specification spec(roomy());
  const char* lines = "reduce k -> r\ncontract o0:drop r:keep\nunfold o1 r -> c\nsplit o2 c -> d";
  EXPECT_TRUE(rejected(kSplitAboveUnfold, spec, lines));
  EXPECT_TRUE(keeps(kSplitAboveUnfold, spec, lines,
                    "reduce k -> r\ncontract o0:drop r:keep\nsplit o2 o1 -> c\nunfold c r -> d"));
  EXPECT_FALSE(
      rejected(kSplitAboveUnfold, spec,
               "reduce k -> r\ncontract o0:drop r:keep\nsplit o2 o1 -> c\nunfold c r -> d"));
}

TEST(SplitAboveUnfold, LeavesAloneWhatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kSplitAboveUnfold, spec,
               "reduce k -> r\nunfold o1 r -> c\ncontract o0:drop c:keep\nsplit o2 c -> d"));
}

TEST(SplitAboveUnfold, IsAboutTheMinorPartInALargeBlock) {
  const Specification spec(blocks());
  const char* before = "reduce k -> r\ncontract o0:drop r:keep\n";
  const auto split = [&](const char* lines) {
    return rejected(kSplitAboveUnfold, spec, std::string(before) + lines);
  };
  EXPECT_TRUE(split("merge o1 g -> q m\nunfold m r -> c\nsplit q c -> d"));
  EXPECT_FALSE(split("unfold o1 r -> c\nsplit c o2 -> d")) << "a window of blocks";
  EXPECT_FALSE(split("merge o1 s*k -> q m\nunfold m r -> c\nsplit q c -> d")) << "6 < 8 * 2";
}

TEST(MergeAboveUnfold, StandsBelowInALargeBlock) {
  const Specification spec(blocks());
  const char* lines = "reduce k -> r\ncontract o0:drop r:keep\nunfold o1 r -> c\nmerge c g -> q m";
  EXPECT_TRUE(rejected(kMergeAboveUnfold, spec, lines));
  EXPECT_TRUE(keeps(kMergeAboveUnfold, spec, lines,
                    "reduce k -> r\ncontract o0:drop r:keep\nmerge o1 g -> q m\nunfold m r -> c"));
  EXPECT_FALSE(
      rejected(kMergeAboveUnfold, spec,
               "reduce k -> r\ncontract o0:drop r:keep\nunfold o1 r -> c\nmerge c s -> q m"));
}

}  // namespace
}  // namespace syno
