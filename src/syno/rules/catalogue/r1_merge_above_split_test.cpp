#include <string>

#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(MergeUndoesSplit, IsLeftOut) {
  const Specification spec(roomy());
  EXPECT_TRUE(
      rejected(kMergeUndoesSplit, spec, "reduce s -> r\nsplit o1 r -> c\nmerge c s -> q m"));
  EXPECT_TRUE(rejected(kMergeUndoesSplit, spec, "split o0 o1 -> c\nmerge c H -> q m"));
}

TEST(MergeUndoesSplit, LooksThroughNestedSplits) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kMergeUndoesSplit, spec,
                       "reduce s -> r\nsplit o1 r -> c\nsplit o0 c -> d\nmerge d s -> q m"));
  EXPECT_TRUE(rejected(
      kMergeUndoesSplit, spec,
      "reduce s -> r\nreduce k -> t\nsplit o1 r -> c\nsplit c t -> d\nmerge d k*s -> q m"));
  EXPECT_FALSE(
      rejected(kMergeUndoesSplit, spec,
               "reduce s -> r\nreduce k -> t\nsplit o1 r -> c\nsplit c t -> d\nmerge d s -> q m"));
}

TEST(MergeUndoesSplit, LeavesOtherBlocksAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kMergeUndoesSplit, spec, "reduce s -> r\nsplit o1 r -> c\nmerge c k -> q m"));
  EXPECT_FALSE(
      rejected(kMergeUndoesSplit, spec, "split o0 o1 -> c\nshift c 1 -> d\nmerge d H -> q m"));
}

TEST(MergeUndoesSplit, LeavesASplitAloneThatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kMergeUndoesSplit, spec,
               "reduce s -> r\nsplit o1 r -> c\ncontract o0:drop c:keep\nmerge c s -> q m"));
}

TEST(MergeUndoesSplit, SeveralPartsAtOnce) {
  const Specification spec(roomy());
  const char* nested = "reduce s -> r\nreduce k -> t\nsplit o1 r -> c\nsplit c t -> d\n";
  EXPECT_TRUE(rejected(kMergeUndoesSplit, spec, std::string(nested) + "merge d k*s -> q m"));
  EXPECT_TRUE(rejected(kMergeUndoesSplit, spec, std::string(nested) + "merge d k -> q m"));
  EXPECT_FALSE(rejected(kMergeUndoesSplit, spec, std::string(nested) + "merge d s -> q m"));
  EXPECT_TRUE(rejected(kMergeUndoesSplit, spec,
                       "reduce s -> r\nreduce k -> t\nsplit r t -> c\nsplit o1 c -> d\n"
                       "merge d k -> q m"));
}

TEST(MergeAroundReduction, IsLeftOut) {
  const Specification spec(roomy());
  EXPECT_TRUE(
      rejected(kMergeAroundReduction, spec, "reduce k -> r\nsplit o1 r -> c\nmerge c k*s -> q m"));
  EXPECT_FALSE(
      rejected(kMergeAroundReduction, spec, "reduce k -> r\nsplit o1 r -> c\nmerge c s -> q m"));
}

TEST(MergeAroundReduction, LeavesOtherMinorPartsAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kMergeAroundReduction, spec,
                        "merge o2 k -> a b\nsplit o1 b -> c\nmerge c k*s -> q m"));
  EXPECT_FALSE(rejected(kMergeAroundReduction, spec,
                        "reduce k -> r\nsplit o1 r -> c\nshift c 1 -> d\nmerge d k*s -> q m"));
}

// One weight, which a first contraction takes: then no piece of a Merge is kept for another.
SpecificationSource with_one_weight() {
  SpecificationSource source = roomy();
  source.limits.max_weights = 1;
  return source;
}
std::string behind_weight(const std::string& lines) {
  return "contract o0:drop\n" + lines;
}

TEST(MergeAboveSplit, ABlockThatDividesTheMinorPartMergesThatPart) {
  const Specification spec(with_one_weight());
  const std::string lines = behind_weight("split o1 o2 -> c\nmerge c s -> q m");
  EXPECT_TRUE(rejected(kMergeAboveSplit, spec, lines));
  EXPECT_TRUE(
      keeps(kMergeAboveSplit, spec, lines, behind_weight("merge o2 s -> a b\nsplit o1 a -> c")));
}

TEST(MergeAboveSplit, ABlockThatTheMinorPartDividesMergesTheMajorPart) {
  const Specification spec(with_one_weight());
  const std::string lines = behind_weight("merge o2 s -> a b\nsplit o1 b -> c\nmerge c k*s -> q m");
  EXPECT_TRUE(rejected(kMergeAboveSplit, spec, lines));
  EXPECT_TRUE(keeps(kMergeAboveSplit, spec, lines,
                    behind_weight("merge o2 s -> a b\nmerge o1 k -> q m\nsplit m b -> c")));
}

TEST(MergeAboveSplit, CoprimeBlocksHaveNoOtherForm) {
  const Specification spec(with_one_weight());
  EXPECT_FALSE(rejected(kMergeAboveSplit, spec,
                        behind_weight("merge o2 s -> a b\nsplit o1 b -> c\nmerge c k -> q m")));
}

TEST(MergeAboveSplit, LeavesASplitAloneThatAWeightHolds) {
  SpecificationSource source = roomy();
  source.limits.max_weights = 1;
  const Specification spec(source);
  EXPECT_FALSE(matches(kMergeAboveSplit, spec,
                       "split o1 o2 -> c\ncontract o0:drop c:keep\nmerge c s -> q m"));
}

TEST(MergeAboveSplit, KeepsAPieceThatCouldLeaveTheData) {
  const char* lines = "split o1 o2 -> c\nmerge c s -> q m";
  SpecificationSource source = roomy();
  source.limits.max_weights = 1;
  EXPECT_FALSE(rejected(kMergeAboveSplit, Specification(source), lines));
  source.primary[2] = "W: 0";
  EXPECT_TRUE(rejected(kMergeAboveSplit, Specification(source), lines))
      << "no budget is left for a contraction that takes the quotient";
}

TEST(MergeAboveSplit, LeavesPartsAloneThatAWeightHoldsWhileAnotherCanFollow) {
  const char* lines = "contract o1:keep\nsplit o1 o2 -> c\nmerge c s -> q m";
  SpecificationSource source = roomy();
  source.primary[1] = "H: 1";
  source.primary[2] = "W: 0";
  source.limits.max_weights = 2;
  EXPECT_FALSE(rejected(kMergeAboveSplit, Specification(source), lines));
  source.limits.max_weights = 1;
  EXPECT_TRUE(rejected(kMergeAboveSplit, Specification(source), lines));
}

TEST(MergeAboveSplit, MakesNoPieceOfReductionsAlone) {
  const Specification spec(with_one_weight());
  const std::string before = "reduce k*s -> r\ncontract o0:drop\n";
  EXPECT_FALSE(rejected(kMergeAboveSplit, spec, before + "split o1 r -> c\nmerge c s -> q m"));
  EXPECT_FALSE(rejected(kMergeAboveSplit, spec,
                        before + "merge o1 s -> a b\nsplit r b -> c\nmerge c k*s -> q m"));
}

}  // namespace
}  // namespace syno
