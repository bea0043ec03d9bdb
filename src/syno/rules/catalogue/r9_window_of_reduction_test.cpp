#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(WindowOfReduction, IsLeftOut) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kWindowOfReduction, spec, "reduce k -> r\nunfold o1 r -> c"));
  EXPECT_TRUE(
      rejected(kWindowOfReduction, spec, "reduce k*s -> r\nmerge r k -> q m\nunfold o1 m -> c"));
}

TEST(WindowOfReduction, IsFineOnceAWeightHoldsIt) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kWindowOfReduction, spec,
                        "reduce k -> r\ncontract o0:drop r:keep\nunfold o1 r -> c"));
  EXPECT_FALSE(rejected(kWindowOfReduction, spec,
                        "reduce k*s -> r\ncontract o0:drop r:keep\nmerge r k -> q m\n"
                        "unfold o1 m -> c"));
}

TEST(WindowOfReduction, IsFineForOtherWindows) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kWindowOfReduction, spec, "merge o0 k -> q m\nunfold o1 m -> c"));
}

TEST(WindowOfReduction, SlidesOverNoReduction) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kWindowOfReduction, spec,
                       "reduce k -> r\nreduce H -> t\ncontract o0:drop r:keep\nunfold t r -> c"));
}

}  // namespace
}  // namespace syno
