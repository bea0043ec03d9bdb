#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(SplitAboveShare, StandsBelowTheWeight) {
  const Specification spec(roomy());
  const char* lines = "contract o0:drop o1:keep o2:keep\nsplit o1 o2 -> c";
  EXPECT_TRUE(rejected(kSplitAboveShare, spec, lines));
  EXPECT_TRUE(keeps(kSplitAboveShare, spec, lines, "split o1 o2 -> c\ncontract o0:drop c:keep"));
}

TEST(SplitAboveShare, StandsBelowAllWeightsThatHoldThePair) {
  const Specification spec(roomy());
  const char* lines =
      "reduce k -> r\ncontract o0:drop o1:keep o2:keep\n"
      "contract o1:keep o2:keep r:keep\nsplit o2 o1 -> c";
  EXPECT_TRUE(rejected(kSplitAboveShare, spec, lines));
  EXPECT_TRUE(keeps(kSplitAboveShare, spec, lines,
                    "reduce k -> r\nsplit o2 o1 -> c\ncontract o0:drop c:keep\n"
                    "contract c:keep r:keep"));
}

TEST(SplitAboveShare, NeedsAWeightThatHoldsBoth) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kSplitAboveShare, spec, "contract o0:drop o1:keep\nsplit o1 o2 -> c"));
  EXPECT_FALSE(rejected(kSplitAboveShare, spec,
                        "contract o0:drop o1:keep\ncontract o2:keep\nsplit o1 o2 -> c"));
}

TEST(SplitAboveShare, WeightsThatHoldOnePartOnlyStandBelow) {
  const Specification spec(roomy());
  const char* lines = "contract o0:drop o1:keep o2:keep\ncontract o1:keep\nsplit o1 o2 -> c";
  EXPECT_TRUE(rejected(kSplitAboveShare, spec, lines));
  EXPECT_TRUE(keeps(kSplitAboveShare, spec, lines,
                    "contract o1:keep\nsplit o1 o2 -> c\ncontract o0:drop c:keep"));
}

TEST(SplitAboveShare, LeavesCoordinatesAloneThatNoWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kSplitAboveShare, spec, "split o1 o2 -> c"));
}

}  // namespace
}  // namespace syno
