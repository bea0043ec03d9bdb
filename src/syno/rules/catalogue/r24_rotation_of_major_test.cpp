#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(RotationOfMajor, IsARotationOfTheQuotient) {
  const Specification spec(roomy());
  const char* lines =
      "reduce s -> r\nshift o1 1 -> u\nsplit u r -> c\nshift c 1 -> d\nmerge d s -> q m";
  EXPECT_TRUE(rejected(kRotationOfMajor, spec, lines));
  EXPECT_TRUE(keeps(kRotationOfMajor, spec, lines,
                    "reduce s -> r\nsplit o1 r -> c\nshift c 1 -> d\nmerge d s -> q m\n"
                    "shift q 1 -> v"));
}

TEST(RotationOfMajor, NeedsTheBlockOfTheSplit) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kRotationOfMajor, spec,
                        "reduce k -> r\nshift o1 1 -> u\nsplit u r -> c\nmerge c s -> q m"));
  EXPECT_FALSE(rejected(kRotationOfMajor, spec,
                        "reduce s -> r\nshift o1 1 -> u\nsplit r u -> c\nmerge c s -> q m"));
}

TEST(RotationOfMajor, LeavesARotationAloneThatAWeightHolds) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kRotationOfMajor, spec,
                        "reduce s -> r\nshift o1 1 -> u\ncontract u:keep\nsplit u r -> c\n"
                        "shift c 1 -> d\nmerge d s -> q m"));
}

}  // namespace
}  // namespace syno
