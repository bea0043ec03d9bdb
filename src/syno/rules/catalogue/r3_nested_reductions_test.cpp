#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(NestedReductions, AreOneReduction) {
  const Specification spec(roomy());
  const char* lines = "reduce s -> r\nreduce k -> t\nsplit o1 r -> c\nsplit c t -> d";
  EXPECT_TRUE(rejected(kNestedReductions, spec, lines));
  EXPECT_TRUE(keeps(kNestedReductions, spec, lines, "reduce k*s -> r\nsplit o1 r -> c"));
}

TEST(NestedReductions, WeightsHoldTheOne) {
  const Specification spec(roomy());
  const char* lines =
      "reduce s -> r\nreduce k -> t\ncontract o0:drop r:keep t:keep\nsplit o1 r -> c\nsplit c t -> "
      "d";
  EXPECT_TRUE(rejected(kNestedReductions, spec, lines));
  EXPECT_TRUE(keeps(kNestedReductions, spec, lines,
                    "reduce k*s -> r\ncontract o0:drop r:keep\nsplit o1 r -> c"));
}

TEST(NestedReductions, StayTwoWhereOneIsHeldAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(
      kNestedReductions, spec,
      "reduce s -> r\nreduce k -> t\ncontract o0:drop r:keep\nsplit o1 r -> c\nsplit c t -> d"));
  EXPECT_FALSE(rejected(
      kNestedReductions, spec,
      "reduce s -> r\nreduce k -> t\nsplit o1 r -> c\ncontract o0:drop c:keep\nsplit c t -> d"));
}

}  // namespace
}  // namespace syno
