#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(PrimaryBlock, IsLeftOut) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected(kPrimaryBlock, spec, "merge o0 s^-1*C -> q m"));
  EXPECT_TRUE(rejected(kPrimaryBlock, spec, "split o0 o1 -> c\nmerge c C -> q m"));
}

TEST(PrimaryBlock, LeavesBlocksOfCoefficientsAlone) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kPrimaryBlock, spec, "merge o0 s -> q m"));
  EXPECT_FALSE(rejected(kPrimaryBlock, spec, "reduce C -> r"));
}

}  // namespace
}  // namespace syno
