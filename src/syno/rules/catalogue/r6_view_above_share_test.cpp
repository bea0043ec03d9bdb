#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(ViewAboveShare, AShiftStandsBelowTheWeight) {
  const Specification spec(roomy());
  const char* lines = "contract o0:drop o1:keep\nshift o1 1 -> c";
  EXPECT_TRUE(rejected(kViewAboveShare, spec, lines));
  EXPECT_TRUE(keeps(kViewAboveShare, spec, lines, "shift o1 1 -> c\ncontract o0:drop c:keep"));
}

TEST(ViewAboveShare, AMergeStandsBelowTheWeight) {
  const Specification spec(roomy());
  const char* lines = "contract o0:drop o1:keep\nmerge o1 s -> q m";
  EXPECT_TRUE(rejected(kViewAboveShare, spec, lines));
  EXPECT_TRUE(
      keeps(kViewAboveShare, spec, lines, "merge o1 s -> q m\ncontract o0:drop q:keep m:keep"));
}

TEST(ViewAboveShare, StandsBelowAllWeightsThatHoldTheCoordinate) {
  const Specification spec(roomy());
  const char* lines = "contract o0:drop o1:keep\ncontract o1:keep o2:keep\nmerge o1 s -> q m";
  EXPECT_TRUE(rejected(kViewAboveShare, spec, lines));
  EXPECT_TRUE(keeps(kViewAboveShare, spec, lines,
                    "merge o1 s -> q m\ncontract o0:drop q:keep m:keep\n"
                    "contract q:keep m:keep o2:keep"));
}

TEST(ViewAboveShare, LeavesCoordinatesAloneThatNoWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kViewAboveShare, spec, "contract o0:drop o2:keep\nshift o1 1 -> c"));
}

TEST(ViewAboveShare, LeavesViewsAloneThatAreNotOneToOne) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kViewAboveShare, spec, "contract o0:drop o1:keep\nstride o1 s -> c"));
}

TEST(DroppedPieces, AreTheWhole) {
  const Specification spec(roomy());
  const char* lines = "merge o1 s -> q m\ncontract q:drop m:drop o2:keep";
  EXPECT_TRUE(rejected(kDroppedPieces, spec, lines));
  EXPECT_TRUE(keeps(kDroppedPieces, spec, lines, "contract o1:drop o2:keep"));
}

TEST(DroppedPieces, JoinAWholeThatAnEarlierWeightHolds) {
  const Specification spec(roomy());
  const char* lines = "contract o0:drop o1:keep\nmerge o1 s -> q m\ncontract q:drop m:drop o2:keep";
  EXPECT_TRUE(rejected(kDroppedPieces, spec, lines));
  EXPECT_TRUE(
      keeps(kDroppedPieces, spec, lines, "contract o0:drop o1:keep\ncontract o1:join o2:keep"));
}

TEST(DroppedPieces, AreTheWholeWithoutItsRotations) {
  const Specification spec(roomy());
  const char* lines = "shift o2 1 -> d\nmerge d s -> q m\ncontract q:drop m:drop o0:keep";
  EXPECT_TRUE(rejected_under_restrictions(kDroppedPieces, spec, lines));
  EXPECT_TRUE(keeps(kDroppedPieces, spec, lines, "contract o2:drop o0:keep"));
}

TEST(DroppedPieces, AreTheWholeForAllWeightsThatHoldBoth) {
  const Specification spec(roomy());
  const char* lines =
      "reduce k -> r\nmerge o1 s -> q m\ncontract o0:drop q:keep m:keep r:keep\n"
      "contract q:join m:join o2:keep r:join";
  EXPECT_TRUE(rejected(kDroppedPieces, spec, lines));
  EXPECT_TRUE(keeps(kDroppedPieces, spec, lines,
                    "reduce k -> r\ncontract o0:drop o1:keep r:keep\n"
                    "contract o1:join o2:keep r:join"));
  EXPECT_FALSE(
      rejected(kDroppedPieces, spec,
               "merge o1 s -> q m\ncontract o0:drop m:keep\ncontract q:drop m:join o2:keep"));
}

TEST(DroppedPieces, NeedBothPiecesOfOneMerge) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kDroppedPieces, spec, "merge o1 s -> q m\ncontract q:drop m:keep"));
  EXPECT_FALSE(rejected(kDroppedPieces, spec, "merge o1 s -> q m\ncontract q:drop o2:keep"));
  EXPECT_FALSE(rejected(kDroppedPieces, spec,
                        "merge o1 s -> q m\nmerge o2 s -> u v\ncontract q:drop v:drop"));
}

TEST(DroppedPieces, StayWhereARestrictionLeavesTheWholeOut) {
  const Specification spec(roomy());
  const char* lines = "split o1 o0 -> c\nmerge c s -> q m\ncontract q:drop m:drop o2:keep";
  EXPECT_TRUE(rejected(kDroppedPieces, spec, lines));
  EXPECT_FALSE(rejected_under_restrictions(kDroppedPieces, spec, lines))
      << "R8: the result of a Split does not leave the data";
}

}  // namespace
}  // namespace syno
