#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(DroppedRemainders, AreOneRemainder) {
  const Specification spec(roomy());
  const char* lines =
      "reduce s -> r\nmerge o1 k -> q m\nmerge q s -> u v\ncontract m:drop r:keep v:drop";
  EXPECT_TRUE(rejected(kDroppedRemainders, spec, lines));
  EXPECT_TRUE(keeps(kDroppedRemainders, spec, lines,
                    "reduce s -> r\nmerge o1 k*s -> u m\ncontract m:drop r:keep"));
}

TEST(DroppedRemainders, EarlierWeightsHoldTheOne) {
  const Specification spec(roomy());
  const char* lines =
      "reduce s -> r\nmerge o1 k -> q m\nmerge q s -> u v\ncontract o0:drop m:keep v:keep\n"
      "contract m:join r:keep v:join";
  EXPECT_TRUE(rejected(kDroppedRemainders, spec, lines));
  EXPECT_TRUE(keeps(kDroppedRemainders, spec, lines,
                    "reduce s -> r\nmerge o1 k*s -> u m\ncontract o0:drop m:keep\n"
                    "contract m:join r:keep"));
}

TEST(DroppedRemainders, StayTwoWhereOneStaysOrIsHeldAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(
      kDroppedRemainders, spec,
      "reduce s -> r\nmerge o1 k -> q m\nmerge q s -> u v\ncontract m:drop r:keep v:keep"));
  EXPECT_FALSE(
      rejected(kDroppedRemainders, spec,
               "reduce s -> r\nmerge o1 k -> q m\nmerge q s -> u v\ncontract o0:drop m:keep\n"
               "contract m:join r:keep v:drop"));
}

// The Merge of both would be one by 1.
TEST(DroppedRemainders, OfBlocksWhoseProductIsOneStay) {
  const Specification spec(with_a_layer_of_one());
  EXPECT_FALSE(rejected(
      kDroppedRemainders, spec,
      "reduce s -> r\nmerge o1 s -> q m\nmerge q s^-1 -> u v\ncontract m:drop r:keep v:drop"));
}

}  // namespace
}  // namespace syno
