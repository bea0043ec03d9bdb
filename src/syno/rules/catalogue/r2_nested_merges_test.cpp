#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

// Chains never reach their limit.
SpecificationSource long_chains() {
  SpecificationSource source = roomy();
  source.limits.max_chain_length = source.limits.max_depth + 1;
  return source;
}

TEST(NestedMerges, TakeTheSmallBlockFirst) {
  const Specification spec(long_chains());
  const char* lines = "merge o1 k*s -> q m\nmerge m k -> a b";
  EXPECT_TRUE(rejected(kNestedMerges, spec, lines));
  EXPECT_TRUE(keeps(kNestedMerges, spec, lines, "merge o1 k -> t b\nmerge t s -> q a"));
  EXPECT_FALSE(rejected(kNestedMerges, spec, "merge o1 k -> t b\nmerge t s -> q a"));
}

TEST(NestedMerges, LaterStepsUseThePiecesOfWhatIsKept) {
  const Specification spec(long_chains());
  const char* lines = "merge o1 k*s -> q m\nshift q 1 -> u\nmerge m k -> a b";
  EXPECT_TRUE(rejected(kNestedMerges, spec, lines));
  EXPECT_TRUE(
      keeps(kNestedMerges, spec, lines, "merge o1 k -> t b\nmerge t s -> q a\nshift q 1 -> u"));
}

TEST(NestedMerges, LeaveARemainderAloneThatAWeightHolds) {
  const Specification spec(long_chains());
  EXPECT_FALSE(rejected(kNestedMerges, spec,
                        "merge o1 k*s -> q m\ncontract o0:drop m:keep\nmerge m k -> a b"));
}

TEST(NestedMerges, LeaveUnorderedDimensionsAlone) {
  const Specification spec(long_chains());
  EXPECT_FALSE(rejected(kNestedMerges, spec, "merge o0 k*s -> q m\nmerge m k -> a b"));
}

TEST(NestedMerges, DoNotLengthenAChainThatCouldStillGrow) {
  const char* lines = "merge o1 k*s -> q m\nmerge m k -> a b";
  SpecificationSource source = roomy();
  EXPECT_FALSE(rejected(kNestedMerges, Specification(source), lines))
      << "the quotient is one view deep, and two in what is kept";
  source.limits.max_depth = 6;
  EXPECT_TRUE(rejected(kNestedMerges, Specification(source), lines))
      << "the four steps left make no chain longer than six";
}

}  // namespace
}  // namespace syno
