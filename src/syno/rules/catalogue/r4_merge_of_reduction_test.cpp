#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(MergeOfReduction, IsTwoReduces) {
  const Specification spec(roomy());
  const char* lines = "reduce k*s -> r\nmerge r s -> q m";
  EXPECT_TRUE(rejected(kMergeOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kMergeOfReduction, spec, lines, "reduce k -> q\nreduce s -> m"));
}

TEST(MergeOfReduction, IsTwoReducesForWeightsToo) {
  const Specification spec(roomy());
  const char* lines = "reduce k*s -> r\ncontract o0:drop r:keep\nmerge r s -> q m";
  EXPECT_TRUE(rejected(kMergeOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kMergeOfReduction, spec, lines,
                    "reduce k -> q\nreduce s -> m\ncontract o0:drop q:keep m:keep"));
}

TEST(MergeOfReduction, AWeightThatHoldsAPieceHoldsItsReduce) {
  const Specification spec(roomy());
  const char* lines =
      "reduce k*s^2 -> r\nmerge r s -> q m\ncontract o0:drop q:keep\nmerge q s -> u v";
  EXPECT_TRUE(rejected(kMergeOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kMergeOfReduction, spec, lines,
                    "reduce k -> u\nreduce s -> v\nreduce s -> m\ncontract o0:drop u:keep v:keep"));
}

TEST(MergeOfReduction, LeavesOtherMergesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kMergeOfReduction, spec, "reduce s -> r\nsplit o1 r -> c\nmerge c k -> q m"));
}

TEST(MergeOfReduction, NeedsRoomForOneMoreReduce) {
  SpecificationSource source = roomy();
  source.limits.max_reductions = 1;
  EXPECT_FALSE(
      rejected(kMergeOfReduction, Specification(source), "reduce k*s -> r\nmerge r s -> q m"));
}

TEST(MergeOfReduction, CostsNoMoreBudgetThanLaterStepsCouldCharge) {
  // Reduce C and Merge by s charge s once; Reduce s^-1*C and Reduce s charge it twice.
  const char* lines = "reduce C -> r\nmerge r s -> q m";
  SpecificationSource source = roomy();
  EXPECT_TRUE(matches(kMergeOfReduction, Specification(source), lines));
  EXPECT_FALSE(rejected(kMergeOfReduction, Specification(source), lines));
  source.limits.max_merges = 1;
  EXPECT_FALSE(rejected(kMergeOfReduction, Specification(source), lines)) << "a Stride may follow";
  source.limits.max_strides = 0;
  EXPECT_TRUE(rejected(kMergeOfReduction, Specification(source), lines));
  source.coefficient[1] = "s=2: 1";
  EXPECT_FALSE(rejected(kMergeOfReduction, Specification(source), lines)) << "not affordable";
}

// Two Reduces are never affordable, so pieces of one are what there is.
SpecificationSource one_reduce() {
  SpecificationSource source = roomy();
  source.limits.max_reductions = 1;
  source.limits.max_chain_length = source.limits.max_depth + 1;
  return source;
}

TEST(MergeOrderOfReduction, KeepsOneOfTwoBlocks) {
  const Specification spec(one_reduce());
  const char* by_small = "reduce C -> r\nmerge r s -> q m";
  const char* by_large = "reduce C -> r\nmerge r s^-1*C -> q m";
  EXPECT_FALSE(rejected(kMergeOrderOfReduction, spec, by_small));
  EXPECT_TRUE(rejected(kMergeOrderOfReduction, spec, by_large));
  EXPECT_TRUE(keeps(kMergeOrderOfReduction, spec, by_large, by_small));
}

TEST(MergeOrderOfReduction, MergesQuotientsByAscendingBlocks) {
  const Specification spec(one_reduce());
  const char* ascending = "reduce C -> r\nmerge r s -> q m\nmerge q k -> u v";
  EXPECT_FALSE(rejected(kMergeOrderOfReduction, spec, ascending));
  for (const char* other : {"reduce C -> r\nmerge r k -> q m\nmerge q s -> u v",
                            "reduce C -> r\nmerge r k*s -> q m\nmerge m s -> u v"}) {
    EXPECT_TRUE(rejected(kMergeOrderOfReduction, spec, other)) << other;
    EXPECT_TRUE(keeps(kMergeOrderOfReduction, spec, other, ascending)) << other;
  }
}

TEST(MergeOrderOfReduction, StandsBelowWeights) {
  const Specification spec(one_reduce());
  const char* lines = "reduce C -> r\ncontract o0:drop r:keep\nmerge r s -> q m";
  EXPECT_TRUE(rejected(kMergeOrderOfReduction, spec, lines));
  EXPECT_TRUE(keeps(kMergeOrderOfReduction, spec, lines,
                    "reduce C -> r\nmerge r s -> q m\ncontract o0:drop q:keep m:keep"));
}

}  // namespace
}  // namespace syno
