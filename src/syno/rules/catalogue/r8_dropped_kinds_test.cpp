#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(DroppedKinds, IteratorsAndPiecesOfMergesMayLeave) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kDroppedKinds, spec, "contract o1:drop o0:keep"));
  EXPECT_FALSE(rejected(kDroppedKinds, spec, "merge o1 s -> q m\ncontract q:drop o0:keep"));
  EXPECT_FALSE(rejected(kDroppedKinds, spec, "merge o1 s -> q m\ncontract m:drop o0:keep"));
}

TEST(DroppedKinds, ResultsOfOtherViewsMayNot) {
  const Specification spec(roomy());
  for (const char* view : {"split o1 o2 -> c", "shift o1 1 -> c", "stride o1 s -> c"}) {
    EXPECT_TRUE(rejected(kDroppedKinds, spec, std::string(view) + "\ncontract c:drop o0:keep"))
        << view;
  }
  EXPECT_TRUE(
      rejected(kDroppedKinds, spec, "reduce k -> r\nunfold o1 r -> c\ncontract c:drop o0:keep"));
}

TEST(DroppedKinds, AReduceMayLeaveWhereAnEarlierWeightHoldsIt) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kDroppedKinds, spec,
                        "reduce k -> r\ncontract o0:drop r:keep\ncontract r:join o1:keep"));
  EXPECT_TRUE(rejected(kDroppedKinds, spec, "reduce k -> r\ncontract r:drop o1:keep"));
}

TEST(DroppedKinds, APieceOfAReduceMayLeaveWhereAnEarlierWeightHoldsIt) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kDroppedKinds, spec,
                        "reduce k*s -> r\nmerge r s -> q m\ncontract o0:drop m:keep\n"
                        "contract m:join o1:keep"));
  EXPECT_TRUE(
      rejected(kDroppedKinds, spec, "reduce k*s -> r\nmerge r s -> q m\ncontract m:drop o1:keep"));
}

TEST(DroppedKinds, AnythingMayStay) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kDroppedKinds, spec, "split o1 o2 -> c\ncontract c:keep o0:drop"));
}

}  // namespace
}  // namespace syno
