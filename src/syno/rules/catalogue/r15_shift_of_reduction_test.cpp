#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(ShiftOfReduction, IsNone) {
  const Specification spec(roomy());
  const char* lines = "reduce k -> r\nshift r 1 -> c";
  EXPECT_TRUE(refused(kShiftOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kShiftOfReduction, spec, lines, "reduce k -> r"));
}

TEST(ShiftOfReduction, IsNoneForAWeightThatHoldsTheReduce) {
  const Specification spec(roomy());
  const char* lines = "reduce k -> r\ncontract o0:drop r:keep\nshift r 1 -> c";
  EXPECT_TRUE(refused(kShiftOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kShiftOfReduction, spec, lines, "reduce k -> r\ncontract o0:drop r:keep"));
}

TEST(ShiftOfReduction, LeavesOtherCoordinatesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(refused(kShiftOfReduction, spec, "reduce k -> r\nshift o1 1 -> c"));
  EXPECT_FALSE(refused(kShiftOfReduction, spec, "reduce k -> r\nsplit o1 r -> c\nshift c 1 -> d"));
}

}  // namespace
}  // namespace syno
