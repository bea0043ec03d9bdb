#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(WeightsOnlyReduce, IsLeftOutWhereItIsMixedWithAnOutputIndex) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kWeightsOnlyReduce, spec,
                       "reduce s -> r\nreduce k -> i\nsplit r o0 -> c\nmerge c s -> q m\n"
                       "contract q:keep m:drop\ncontract q:join i:keep"));
  EXPECT_TRUE(rejected(kWeightsOnlyReduce, spec,
                       "reduce s -> r\ncontract o0:keep r:keep\nsplit r o1 -> c\ncontract c:drop"));
}

TEST(WeightsOnlyReduce, LeavesLowRankProductsAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kWeightsOnlyReduce, spec,
                        "reduce s -> r\nreduce k -> i\ncontract o0:drop r:keep\n"
                        "contract r:join i:keep"));
}

TEST(WeightsOnlyReduce, LeavesReducesAloneThatDataDependsOn) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kWeightsOnlyReduce, spec,
               "reduce s -> r\nsplit o1 r -> c\nmerge c k -> q m\ncontract o0:drop m:drop"));
  EXPECT_FALSE(rejected(kWeightsOnlyReduce, spec, "reduce s -> r\ncontract o0:drop r:keep"));
}

}  // namespace
}  // namespace syno
