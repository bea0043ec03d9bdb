#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(ShiftOfReduction, IsNone) {
  const Specification spec(roomy());
  const char* lines = "reduce k -> r\nshift r 1 -> c";
  EXPECT_TRUE(rejected(kShiftOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kShiftOfReduction, spec, lines, "reduce k -> r"));
}

TEST(ShiftOfReduction, IsNoneForAWeightThatHoldsTheReduce) {
  const Specification spec(roomy());
  const char* lines = "reduce k -> r\ncontract o0:drop r:keep\nshift r 1 -> c";
  EXPECT_TRUE(rejected(kShiftOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kShiftOfReduction, spec, lines, "reduce k -> r\ncontract o0:drop r:keep"));
}

TEST(ShiftOfReduction, IsNoneForAPiece) {
  const Specification spec(roomy());
  const char* piece = "reduce C -> r\nmerge r s -> q m\ncontract o0:drop m:keep";
  const std::string lines = std::string(piece) + "\nshift m 1 -> c";
  EXPECT_TRUE(rejected(kShiftOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kShiftOfReduction, spec, lines, piece));
}

TEST(ShiftOfReduction, LeavesAMixtureAloneThatAWeightTellsApart) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kShiftOfReduction, spec,
                        "reduce s -> a\nreduce k -> b\ncontract o0:drop a:keep\nsplit a b -> c\n"
                        "shift c 1 -> d"));
}

TEST(ShiftOfReduction, LeavesOtherCoordinatesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kShiftOfReduction, spec, "reduce k -> r\nshift o1 1 -> c"));
  EXPECT_FALSE(rejected(kShiftOfReduction, spec, "reduce k -> r\nsplit o1 r -> c\nshift c 1 -> d"));
}

}  // namespace
}  // namespace syno
