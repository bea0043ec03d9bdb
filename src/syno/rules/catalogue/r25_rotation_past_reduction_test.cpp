#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(RotationPastReduction, ShiftsTheMinorPart) {
  const Specification spec(roomy());
  const char* lines = "reduce s -> r\nsplit r o1 -> c\nshift c 1 -> d";
  EXPECT_TRUE(rejected(kRotationPastReduction, spec, lines));
  EXPECT_TRUE(
      keeps(kRotationPastReduction, spec, lines, "reduce s -> r\nshift o1 1 -> u\nsplit r u -> c"));
}

TEST(RotationPastReduction, NeedsTheReductionAsTheMajorPart) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kRotationPastReduction, spec, "reduce s -> r\nsplit o1 r -> c\nshift c 1 -> d"));
  EXPECT_FALSE(rejected(kRotationPastReduction, spec, "split o0 o1 -> c\nshift c 1 -> d"));
}

TEST(RotationPastReduction, LeavesAloneWhatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kRotationPastReduction, spec,
                        "reduce s -> r\ncontract o0:drop r:keep\nsplit r o1 -> c\nshift c 1 -> d"));
  EXPECT_FALSE(
      rejected(kRotationPastReduction, spec,
               "reduce s -> r\ncontract o0:drop o1:keep\nsplit r o1 -> c\nshift c 1 -> d"));
  EXPECT_FALSE(rejected(kRotationPastReduction, spec,
                        "reduce s -> r\nsplit r o1 -> c\ncontract o0:drop c:keep\nshift c 1 -> d"));
}

}  // namespace
}  // namespace syno
