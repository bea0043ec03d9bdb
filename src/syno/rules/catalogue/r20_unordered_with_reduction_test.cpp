#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(UnorderedWithReduction, IsLeftOutForAWholeIndex) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kUnorderedWithReduction, spec, "reduce s -> r\nsplit r o0 -> c"));
  EXPECT_TRUE(rejected(kUnorderedWithReduction, spec, "reduce s -> r\nsplit o0 r -> c"));
  EXPECT_TRUE(rejected(kUnorderedWithReduction, spec,
                       "reduce k -> r\nmerge o0 s -> q m\nsplit m q -> c\nsplit c r -> d"));
}

TEST(UnorderedWithReduction, LeavesGroupsOfChannelsAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kUnorderedWithReduction, spec, "reduce k -> r\nmerge o0 s -> q m\nsplit r m -> c"));
}

TEST(UnorderedWithReduction, LeavesOrderedIteratorsAndHeldReducesAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kUnorderedWithReduction, spec, "reduce s -> r\nsplit o1 r -> c"));
  EXPECT_FALSE(rejected(kUnorderedWithReduction, spec,
                        "reduce s -> r\ncontract o1:keep r:keep\nsplit o0 r -> c"));
}

}  // namespace
}  // namespace syno
