#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(PiecesOfReduction, AreLeftOutAlsoBehindShiftsAndSplits) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kPiecesOfReduction, spec, "reduce k*s -> r\nmerge r s -> q m"));
  EXPECT_TRUE(
      rejected(kPiecesOfReduction, spec, "reduce k*s -> r\nshift r 1 -> c\nmerge c s -> q m"));
  EXPECT_TRUE(rejected(kPiecesOfReduction, spec,
                       "reduce k -> r\nreduce s -> t\nsplit r t -> c\nshift c 1 -> d\n"
                       "merge d s -> q m"));
}

TEST(PiecesOfReduction, AreLeftOutWhereAWeightHoldsTheReduce) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kPiecesOfReduction, spec,
                       "reduce k*s -> r\ncontract o0:drop r:keep\nmerge r s -> q m"));
}

TEST(PiecesOfReduction, LeavesOtherMergesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kPiecesOfReduction, spec, "reduce s -> r\nsplit o1 r -> c\nmerge c s -> q m"));
  EXPECT_FALSE(rejected(kPiecesOfReduction, spec, "merge o0 s -> q m"));
}

}  // namespace
}  // namespace syno
