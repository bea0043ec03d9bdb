#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(SplitOfReductions, IsOneReduce) {
  const Specification spec(roomy());
  const char* lines = "reduce s -> a\nreduce k -> b\nsplit a b -> c";
  EXPECT_TRUE(rejected(kSplitOfReductions, spec, lines));
  EXPECT_TRUE(keeps(kSplitOfReductions, spec, lines, "reduce k*s -> c"));
  EXPECT_TRUE(
      rejected(kSplitOfReductions, spec, "reduce s^-1*C -> a\nreduce s -> b\nsplit b a -> c"));
}

TEST(SplitOfReductions, LeavesOtherCoordinatesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kSplitOfReductions, spec, "reduce s -> a\nsplit o1 a -> c"));
  EXPECT_FALSE(rejected(kSplitOfReductions, spec, "reduce s -> a\nsplit a o1 -> c"));
}

TEST(SplitOfReductions, LeavesReducesAloneThatAWeightTellsApart) {
  const Specification spec(roomy());
  for (const char* held : {"a:keep", "b:keep"}) {
    EXPECT_FALSE(rejected(kSplitOfReductions, spec,
                          std::string("reduce s -> a\nreduce k -> b\ncontract o0:drop ") + held +
                              "\nsplit a b -> c"));
  }
}

TEST(SplitOfReductions, IsOneReduceForWeightsThatHoldBoth) {
  const Specification spec(roomy());
  const char* lines =
      "reduce s -> a\nreduce k -> b\ncontract o0:drop a:keep b:keep\nsplit a b -> c";
  EXPECT_TRUE(rejected(kSplitOfReductions, spec, lines));
  EXPECT_TRUE(keeps(kSplitOfReductions, spec, lines, "reduce k*s -> c\ncontract o0:drop c:keep"));
}

TEST(SplitOfReductions, TakesPiecesOfReducesToo) {
  const Specification spec(roomy());
  const char* lines = "reduce k*s -> r\nreduce k -> a\nmerge r s -> q m\nsplit m a -> c";
  EXPECT_TRUE(rejected(kSplitOfReductions, spec, lines));
  EXPECT_TRUE(keeps(kSplitOfReductions, spec, lines, "reduce k -> q\nreduce k*s -> c"));
}

TEST(SplitOfReductionPieces, IsFewerMerges) {
  SpecificationSource source = roomy();
  source.limits.max_reductions = 1;
  const Specification spec(source);
  const char* swapped = "reduce C -> r\nmerge r s -> q m\nsplit m q -> c";
  EXPECT_TRUE(rejected(kSplitOfReductionPieces, spec, swapped));
  EXPECT_TRUE(keeps(kSplitOfReductionPieces, spec, swapped, "reduce C -> r"));
  const char* three = "reduce C -> r\nmerge r s -> q m\nmerge q k -> u v\nsplit m u -> c";
  EXPECT_TRUE(rejected(kSplitOfReductionPieces, spec, three));
  EXPECT_TRUE(keeps(kSplitOfReductionPieces, spec, three, "reduce C -> r\nmerge r k -> u v"));
}

TEST(SplitOfReductionPieces, LeavesPiecesAloneThatNeedAsManyMergesOrThatAWeightTellsApart) {
  SpecificationSource source = roomy();
  source.limits.max_reductions = 1;
  const Specification spec(source);
  const std::string merged = "reduce C -> r\nmerge r s -> q m\n";
  EXPECT_FALSE(rejected(kSplitOfReductionPieces, spec, merged + "split o1 m -> c"));
  EXPECT_FALSE(
      rejected(kSplitOfReductionPieces, spec, merged + "contract o0:drop m:keep\nsplit m q -> c"));
}

}  // namespace
}  // namespace syno
