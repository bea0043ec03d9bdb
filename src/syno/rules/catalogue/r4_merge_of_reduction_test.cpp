#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(MergeOfReduction, IsTwoReduces) {
  const Specification spec(roomy());
  const char* lines = "reduce k*s -> r\nmerge r s -> q m";
  EXPECT_TRUE(refused(kMergeOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kMergeOfReduction, spec, lines, "reduce k -> q\nreduce s -> m"));
}

TEST(MergeOfReduction, LeavesAReduceAloneThatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(refused(kMergeOfReduction, spec,
                       "reduce k*s -> r\ncontract o0:drop r:keep\nmerge r s -> q m"));
}

TEST(MergeOfReduction, LeavesOtherMergesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      refused(kMergeOfReduction, spec, "reduce s -> r\nsplit o1 r -> c\nmerge c k -> q m"));
}

TEST(MergeOfReduction, NeedsRoomForOneMoreReduce) {
  SpecificationSource source = roomy();
  source.limits.max_reductions = 1;
  EXPECT_FALSE(
      refused(kMergeOfReduction, Specification(source), "reduce k*s -> r\nmerge r s -> q m"));
}

TEST(MergeOfReduction, CostsNoMoreBudget) {
  // Reduce C and Merge by s charge s once; Reduce s^-1*C and Reduce s charge it twice.
  const Specification spec(roomy());
  EXPECT_TRUE(matches(kMergeOfReduction, spec, "reduce C -> r\nmerge r s -> q m"));
  EXPECT_FALSE(refused(kMergeOfReduction, spec, "reduce C -> r\nmerge r s -> q m"));
}

}  // namespace
}  // namespace syno
