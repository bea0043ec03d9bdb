#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

SpecificationSource even_blocks() {
  SpecificationSource source = roomy();
  source.coefficient = {"k=3: 4", "s=2: 4", "g=8: 2"};
  source.bindings = {Binding({{"C", 24}, {"H", 48}, {"W", 12}})};
  return source;
}

TEST(ShiftAboveSplit, IsAShiftOfTheMinorPart) {
  const Specification spec(even_blocks());
  const char* lines = "split o2 o1 -> c\nshift c 1 -> d";
  EXPECT_TRUE(rejected(kShiftAboveSplit, spec, lines));
  EXPECT_TRUE(keeps(kShiftAboveSplit, spec, lines, "shift o1 1 -> c\nsplit o2 c -> d"));
  EXPECT_TRUE(
      rejected(kShiftAboveSplit, spec, "merge o1 g -> q m\nsplit o2 m -> c\nshift c 1 -> d"))
      << "a block of 8";
}

TEST(ShiftAboveSplit, StaysWithASmallBlock) {
  const Specification spec(even_blocks());
  EXPECT_FALSE(
      rejected(kShiftAboveSplit, spec, "merge o1 s -> q m\nsplit o2 m -> c\nshift c 1 -> d"));
  EXPECT_FALSE(rejected(kShiftAboveSplit, spec, "reduce s -> r\nsplit o1 r -> c\nshift c 1 -> d"));
}

// Rotating a sum is nothing, so the whole cyclic shift would be lost for every output.
TEST(ShiftAboveSplit, StaysWhereTheMinorPartIsSummed) {
  const Specification spec(even_blocks());
  EXPECT_FALSE(rejected(kShiftAboveSplit, spec, "reduce H -> r\nsplit o1 r -> c\nshift c 1 -> d"));
}

TEST(ShiftAboveSplit, LeavesAloneWhatAWeightHolds) {
  const Specification spec(even_blocks());
  EXPECT_FALSE(rejected(kShiftAboveSplit, spec,
                        "split o2 o1 -> c\ncontract o0:drop c:keep\nshift c 1 -> d"));
}

TEST(MergeAboveShift, ShiftsTheRemainder) {
  const Specification spec(even_blocks());
  const char* lines = "shift o1 1 -> c\nmerge c g -> q m";
  EXPECT_TRUE(rejected(kMergeAboveShift, spec, lines));
  EXPECT_TRUE(keeps(kMergeAboveShift, spec, lines, "merge o1 g -> q m\nshift m 1 -> c"));
}

// The window by cyclic shift of the paper's operators 07720 and 07795.
TEST(MergeAboveShift, StaysWithASmallBlock) {
  const Specification spec(even_blocks());
  EXPECT_FALSE(rejected(kMergeAboveShift, spec, "shift o1 1 -> c\nmerge c s -> q m"));
  EXPECT_FALSE(rejected(kMergeAboveShift, spec,
                        "reduce s -> r\nsplit o1 r -> c\nshift c 1 -> d\nmerge d s -> q m"));
}

}  // namespace
}  // namespace syno
