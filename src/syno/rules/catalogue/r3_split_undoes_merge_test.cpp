#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(SplitUndoesMerge, IsRefused) {
  const Specification spec(roomy());
  const char* lines = "merge o1 s -> q m\nsplit q m -> c";
  EXPECT_TRUE(rejected(kSplitUndoesMerge, spec, lines));
  EXPECT_TRUE(keeps(kSplitUndoesMerge, spec, lines, Graph(spec.variables(), spec.output())));
}

TEST(SplitUndoesMerge, KeepsTheStepsBesideThePair) {
  const Specification spec(roomy());
  const char* lines = "merge o1 s -> q m\nshift o2 1 -> u\nsplit q m -> c";
  EXPECT_TRUE(rejected(kSplitUndoesMerge, spec, lines));
  EXPECT_TRUE(keeps(kSplitUndoesMerge, spec, lines, "shift o2 1 -> u"));
}

TEST(SplitUndoesMerge, LeavesAShuffleOfThePiecesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kSplitUndoesMerge, spec, "merge o1 s -> q m\nsplit m q -> c"));
}

TEST(SplitUndoesMerge, NeedsThePiecesOfOneMerge) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kSplitUndoesMerge, spec, "merge o1 s -> q m\nmerge o2 s -> u v\nsplit q v -> c"));
}

TEST(SplitUndoesMerge, LeavesPiecesAloneThatAWeightHolds) {
  const Specification spec(roomy());
  for (const char* held : {"q:keep", "m:keep"}) {
    EXPECT_FALSE(
        rejected(kSplitUndoesMerge, spec,
                 std::string("merge o1 s -> q m\ncontract o0:drop ") + held + "\nsplit q m -> c"));
  }
}

}  // namespace
}  // namespace syno
