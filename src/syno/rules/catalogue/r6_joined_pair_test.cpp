#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(JoinedPair, IsOneReduce) {
  const Specification spec(roomy());
  const char* lines =
      "reduce k -> a\nreduce s -> b\ncontract o0:drop a:keep b:keep\n"
      "contract o1:keep a:join b:join";
  EXPECT_TRUE(rejected(kJoinedPair, spec, lines));
  EXPECT_TRUE(keeps(kJoinedPair, spec, lines,
                    "reduce k*s -> r\ncontract o0:drop r:keep\ncontract o1:keep r:join"));
}

TEST(JoinedPair, LeavesReducesAloneThatOtherWeightsHoldApart) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kJoinedPair, spec,
                        "reduce k -> a\nreduce s -> b\ncontract o0:drop a:keep\n"
                        "contract b:keep o2:keep\ncontract o1:keep a:join b:join"));
}

TEST(JoinedPair, LeavesReducesAloneThatStayInTheData) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kJoinedPair, spec,
                        "reduce k -> a\nreduce s -> b\ncontract o0:drop a:keep b:keep\n"
                        "contract o1:keep a:join b:keep"));
}

}  // namespace
}  // namespace syno
