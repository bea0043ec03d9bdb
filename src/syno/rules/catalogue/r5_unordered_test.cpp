#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

Graph nothing(const Specification& spec) {
  return Graph(spec.variables(), spec.output());
}

TEST(ShiftOfUnordered, IsNone) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kShiftOfUnordered, spec, "shift o0 1 -> c"));
  EXPECT_TRUE(keeps(kShiftOfUnordered, spec, "shift o0 1 -> c", nothing(spec)));
}

TEST(ShiftOfUnordered, IsNoneForAWeightThatHoldsTheIterator) {
  const Specification spec(roomy());
  const char* lines = "contract o0:keep o1:keep\nshift o0 1 -> c";
  EXPECT_TRUE(rejected(kShiftOfUnordered, spec, lines));
  EXPECT_TRUE(keeps(kShiftOfUnordered, spec, lines, "contract o0:keep o1:keep"));
}

TEST(ShiftOfUnordered, IsNoneForAPiece) {
  const Specification spec(roomy());
  for (const char* piece : {"q", "m"}) {
    const std::string shift = "\nshift " + std::string(piece) + " 1 -> c";
    const std::string merge = "merge o0 s -> q m";
    EXPECT_TRUE(rejected(kShiftOfUnordered, spec, merge + shift));
    EXPECT_TRUE(rejected(kShiftOfUnordered, spec, merge + "\ncontract q:keep m:keep" + shift));
    EXPECT_TRUE(keeps(kShiftOfUnordered, spec, merge + shift, merge));
  }
}

TEST(ShiftOfUnordered, IsNoneForAPieceOfWhatAWeightHolds) {
  const Specification spec(roomy());
  const char* above = "contract o0:keep o1:keep\nmerge o0 s -> q m";
  const std::string lines = std::string(above) + "\nshift m 1 -> c";
  EXPECT_TRUE(rejected(kShiftOfUnordered, spec, lines));
  EXPECT_TRUE(keeps(kShiftOfUnordered, spec, lines, above));
}

TEST(ShiftOfUnordered, LeavesOrderedDimensionsAndMixturesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kShiftOfUnordered, spec, "shift o1 1 -> c"));
  EXPECT_FALSE(rejected(kShiftOfUnordered, spec, "split o0 o1 -> c\nshift c 1 -> d"));
  EXPECT_FALSE(
      rejected(kShiftOfUnordered, spec,
               "merge o0 s -> q m\ncontract q:keep o1:keep\nsplit m q -> c\nshift c 1 -> d"))
      << "the weight tells the pieces apart";
}

TEST(MergeOrderOfUnordered, KeepsOneOfTwoBlocks) {
  const Specification spec(roomy());
  const char* by_s = "merge o0 s -> q m";
  const char* by_rest = "merge o0 s^-1*C -> q m";
  const bool first = rejected(kMergeOrderOfUnordered, spec, by_s);
  EXPECT_TRUE(rejected(kMergeOrderOfUnordered, spec, first ? by_s : by_rest));
  EXPECT_FALSE(rejected(kMergeOrderOfUnordered, spec, first ? by_rest : by_s));
  EXPECT_TRUE(keeps(kMergeOrderOfUnordered, spec, first ? by_s : by_rest, first ? by_rest : by_s));
}

TEST(MergeOrderOfUnordered, LeavesOrderedDimensionsAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kMergeOrderOfUnordered, spec, "merge o1 s -> q m"));
  EXPECT_FALSE(rejected(kMergeOrderOfUnordered, spec, "merge o1 s^-1*H -> q m"));
}

TEST(MergeOrderOfUnordered, LeavesTwoEqualBlocksAlone) {
  SpecificationSource source = roomy();
  source.output = "[s^2: unordered, H, W]";
  EXPECT_FALSE(rejected(kMergeOrderOfUnordered, Specification(source), "merge o0 s -> q m"));
}

TEST(SplitOfUnorderedPieces, IsRefusedInEitherOrder) {
  const Specification spec(roomy());
  for (const char* split : {"split m q -> c", "split q m -> c"}) {
    const std::string lines = std::string("merge o0 s -> q m\n") + split;
    EXPECT_TRUE(rejected(kSplitOfUnorderedPieces, spec, lines));
    EXPECT_TRUE(keeps(kSplitOfUnorderedPieces, spec, lines, nothing(spec)));
  }
}

TEST(SplitOfUnorderedPieces, LeavesOrderedDimensionsAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kSplitOfUnorderedPieces, spec, "merge o1 s -> q m\nsplit m q -> c"));
}

TEST(SplitOfUnorderedPieces, IsRefusedWhereTheSameWeightsHoldBoth) {
  const Specification spec(roomy());
  const char* lines = "merge o0 s -> q m\ncontract o1:drop q:keep m:keep\nsplit m q -> c";
  EXPECT_TRUE(rejected(kSplitOfUnorderedPieces, spec, lines));
  EXPECT_TRUE(keeps(kSplitOfUnorderedPieces, spec, lines, "contract o1:drop o0:keep"));
}

TEST(SplitOfUnorderedPieces, LeavesPiecesAloneThatAWeightTellsApart) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kSplitOfUnorderedPieces, spec,
                        "merge o0 s -> q m\ncontract o1:drop q:keep\nsplit m q -> c"));
}

}  // namespace
}  // namespace syno
