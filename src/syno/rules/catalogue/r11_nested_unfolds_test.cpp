#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

SpecificationSource windows() {
  SpecificationSource source = roomy();
  source.coefficient = {"k=3: 4", "j=5: 4"};
  source.bindings = {Binding({{"C", 24}, {"H", 24}, {"W", 24}})};
  return source;
}

TEST(NestedUnfolds, TheSmallerWindowStandsBelow) {
  const Specification spec(windows());
  const std::string before = "reduce k -> q\nreduce j -> r\ncontract o0:drop q:keep r:keep\n";
  const std::string lines = before + "unfold o1 r -> c\nunfold c q -> d";
  EXPECT_TRUE(rejected(kNestedUnfolds, spec, lines));
  EXPECT_TRUE(keeps(kNestedUnfolds, spec, lines, before + "unfold o1 q -> c\nunfold c r -> d"));
  EXPECT_FALSE(rejected(kNestedUnfolds, spec, before + "unfold o1 q -> c\nunfold c r -> d"));
}

TEST(NestedUnfolds, OfOneSizeBothStay) {
  const Specification spec(windows());
  EXPECT_FALSE(rejected(kNestedUnfolds, spec,
                        "reduce k -> q\nreduce k -> r\ncontract o0:drop q:keep r:keep\n"
                        "unfold o1 r -> c\nunfold c q -> d"));
}

TEST(NestedUnfolds, LeaveAWindowAloneThatAWeightHolds) {
  const Specification spec(windows());
  EXPECT_FALSE(rejected(kNestedUnfolds, spec,
                        "reduce k -> q\nreduce j -> r\nunfold o1 r -> c\n"
                        "contract o0:drop q:keep c:keep\nunfold c q -> d"));
}

}  // namespace
}  // namespace syno
