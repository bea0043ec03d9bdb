#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(NestedSplits, NestToTheLeft) {
  const Specification spec(roomy());
  const char* lines = "split o1 o2 -> c\nsplit o0 c -> d";
  EXPECT_TRUE(rejected(kNestedSplits, spec, lines));
  EXPECT_TRUE(keeps(kNestedSplits, spec, lines, "split o0 o1 -> c\nsplit c o2 -> d"));
  EXPECT_FALSE(rejected(kNestedSplits, spec, "split o0 o1 -> c\nsplit c o2 -> d"));
}

TEST(NestedSplits, LeavesAnInnerSplitAloneThatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kNestedSplits, spec, "split o1 o2 -> c\ncontract c:keep\nsplit o0 c -> d"));
}

TEST(NestedSplits, NeedALegalProductOnTheLeft) {
  const char* lines = "merge o0 s -> a m\nsplit o1 m -> u\nsplit a u -> v";
  SpecificationSource source = roomy();
  EXPECT_TRUE(rejected(kNestedSplits, Specification(source), lines));
  source.limits.max_size_variables = 2;
  EXPECT_FALSE(rejected(kNestedSplits, Specification(source), lines)) << "s^-1*C*H has three";
}

TEST(NestedSplits, DoNotLengthenAChainThatCouldStillGrow) {
  const char* lines =
      "reduce s -> r\nshift o1 1 -> a\nmerge a s -> q m\nsplit o2 r -> u\nsplit q u -> v";
  SpecificationSource source = roomy();
  source.limits.max_chain_length = 3;
  EXPECT_FALSE(rejected(kNestedSplits, Specification(source), lines)) << "kept: a chain of 4";
  source.limits.max_chain_length = 4;
  EXPECT_FALSE(rejected(kNestedSplits, Specification(source), lines)) << "v cannot be shifted";
  source.limits.max_chain_length = 12;
  EXPECT_TRUE(rejected(kNestedSplits, Specification(source), lines));
  source.limits.max_chain_length = 4;
  source.limits.max_depth = 5;
  EXPECT_TRUE(rejected(kNestedSplits, Specification(source), lines)) << "no step can follow";
}

}  // namespace
}  // namespace syno
