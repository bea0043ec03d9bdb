#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(StrideOfSplit, IsAStrideOfTheMinorPart) {
  const Specification spec(roomy());
  const char* lines = "reduce k -> r\nsplit o1 r -> c\nstride c s -> d";
  EXPECT_TRUE(rejected(kStrideOfSplit, spec, lines));
  EXPECT_TRUE(
      keeps(kStrideOfSplit, spec, lines, "reduce k -> r\nstride r s -> u\nsplit o1 u -> c"));
}

TEST(StrideOfSplit, LeavesASplitAloneThatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kStrideOfSplit, spec,
               "reduce k -> r\nsplit o1 r -> c\ncontract o0:drop c:keep\nstride c s -> d"));
}

}  // namespace
}  // namespace syno
