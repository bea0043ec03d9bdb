#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(NestedStrides, AreOneStride) {
  const Specification spec(roomy());
  const char* lines = "stride o1 s -> c\nstride c k -> d";
  EXPECT_TRUE(rejected(kNestedStrides, spec, lines));
  EXPECT_TRUE(keeps(kNestedStrides, spec, lines, "stride o1 k*s -> c"));
}

TEST(NestedStrides, LeaveAStrideAloneThatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kNestedStrides, spec, "stride o1 s -> c\ncontract o0:drop c:keep\nstride c k -> d"));
  EXPECT_FALSE(rejected(kNestedStrides, spec, "stride o1 s -> c\nstride o2 k -> d"));
}

// The Stride by both would be one by 1.
TEST(NestedStrides, WhoseProductIsOneStay) {
  const Specification spec(with_a_layer_of_one());
  EXPECT_FALSE(rejected(kNestedStrides, spec, "stride o1 s -> a\nstride a s^-1 -> b"));
}

}  // namespace
}  // namespace syno
