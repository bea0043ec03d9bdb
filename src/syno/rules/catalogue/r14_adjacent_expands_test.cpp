#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

Specification repeating() {
  SpecificationSource source = roomy();
  source.limits.max_repeat = 64;
  return Specification(source);
}

TEST(AdjacentExpands, AreAnExpandOfWhatWasMerged) {
  const Specification spec = repeating();
  const char* lines = "merge o1 s -> q m\nexpand q\nexpand m";
  EXPECT_TRUE(rejected(kAdjacentExpands, spec, lines));
  EXPECT_TRUE(keeps(kAdjacentExpands, spec, lines, "expand o1"));
  EXPECT_TRUE(
      rejected(kAdjacentExpands, spec, "merge o1 s -> q m\nexpand m\nshift o2 1 -> c\nexpand q"));
}

TEST(AdjacentExpands, NeedBothPiecesOfOneMerge) {
  const Specification spec = repeating();
  EXPECT_FALSE(rejected(kAdjacentExpands, spec, "merge o1 s -> q m\nexpand m"));
  EXPECT_FALSE(
      rejected(kAdjacentExpands, spec, "merge o1 s -> q m\nmerge o2 s -> u v\nexpand m\nexpand v"));
  EXPECT_FALSE(
      rejected(kAdjacentExpands, spec, "merge o1 s -> q m\nshift q 1 -> c\nexpand c\nexpand m"));
}

TEST(AdjacentExpands, LeavePiecesAloneThatAWeightHolds) {
  const Specification spec = repeating();
  EXPECT_FALSE(rejected(kAdjacentExpands, spec,
                        "merge o1 s -> q m\ncontract q:keep o0:drop\nexpand q\nexpand m"));
  EXPECT_FALSE(rejected(kAdjacentExpands, spec,
                        "merge o1 s -> q m\ncontract q:keep o0:drop\nexpand m\nexpand q"));
}

}  // namespace
}  // namespace syno
