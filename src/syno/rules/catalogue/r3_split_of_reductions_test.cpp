#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(SplitOfReductions, IsOneReduce) {
  const Specification spec(roomy());
  const char* lines = "reduce s -> a\nreduce k -> b\nsplit a b -> c";
  EXPECT_TRUE(refused(kSplitOfReductions, spec, lines));
  EXPECT_TRUE(keeps(kSplitOfReductions, spec, lines, "reduce k*s -> c"));
  EXPECT_TRUE(
      refused(kSplitOfReductions, spec, "reduce s^-1*C -> a\nreduce s -> b\nsplit b a -> c"));
}

TEST(SplitOfReductions, LeavesOtherCoordinatesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(refused(kSplitOfReductions, spec, "reduce s -> a\nsplit o1 a -> c"));
  EXPECT_FALSE(refused(kSplitOfReductions, spec, "reduce s -> a\nsplit a o1 -> c"));
}

TEST(SplitOfReductions, LeavesReducesAloneThatAWeightHolds) {
  const Specification spec(roomy());
  for (const char* held : {"a:keep", "b:keep"}) {
    EXPECT_FALSE(refused(kSplitOfReductions, spec,
                         std::string("reduce s -> a\nreduce k -> b\ncontract o0:drop ") + held +
                             "\nsplit a b -> c"));
  }
}

}  // namespace
}  // namespace syno
