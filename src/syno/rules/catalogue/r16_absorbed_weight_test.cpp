#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(AbsorbedWeight, IsLeftOutInEitherOrder) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kAbsorbedWeight, spec, "contract o0:keep\ncontract o0:join o1:keep"));
  EXPECT_TRUE(rejected(kAbsorbedWeight, spec, "contract o0:keep o1:keep\ncontract o0:join"));
}

TEST(AbsorbedWeight, IsLeftOutThroughViews) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kAbsorbedWeight, spec,
                       "contract o0:drop o1:keep\nshift o1 1 -> c\ncontract c:keep"));
  EXPECT_TRUE(rejected(kAbsorbedWeight, spec,
                       "contract o0:drop o1:keep\nmerge o1 s -> q m\ncontract q:keep"));
  EXPECT_TRUE(rejected(kAbsorbedWeight, spec,
                       "contract o1:keep\nmerge o1 s -> q m\ncontract q:drop m:keep o2:keep"));
  EXPECT_TRUE(rejected(kAbsorbedWeight, spec,
                       "contract o0:drop o1:keep o2:keep\nsplit o1 o2 -> c\ncontract c:keep"));
}

TEST(AbsorbedWeight, LeavesTwoFactorsAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kAbsorbedWeight, spec,
                        "reduce k -> r\ncontract o0:drop r:keep\ncontract r:join o1:keep"));
  EXPECT_FALSE(rejected(kAbsorbedWeight, spec, "contract o0:drop\ncontract o1:keep"));
}

TEST(AbsorbedWeight, LeavesAnIndexAloneThatOnlyPartOfTheOtherFollowsFrom) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kAbsorbedWeight, spec,
                        "merge o1 s -> q m\ncontract q:keep o2:keep\ncontract m:keep o2:join"));
  EXPECT_FALSE(rejected(kAbsorbedWeight, spec,
                        "reduce k -> r\ncontract o1:keep o0:drop\nunfold o1 r -> c\n"
                        "contract c:keep"));
}

}  // namespace
}  // namespace syno
