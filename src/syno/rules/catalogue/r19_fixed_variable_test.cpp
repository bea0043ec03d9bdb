#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

SpecificationSource with_fixed_height() {
  SpecificationSource source = roomy();
  source.primary[1] = "H: 0";
  return source;
}

TEST(FixedVariable, IsNotCutIntoBlocks) {
  EXPECT_TRUE(rejected(kFixedVariable, Specification(with_fixed_height()), "merge o1 s -> q m"));
  EXPECT_FALSE(rejected(kFixedVariable, Specification(roomy()), "merge o1 s -> q m"));
}

TEST(FixedVariable, ComesBackOutOfTheProductOfASplit) {
  const Specification spec(with_fixed_height());
  const char* split = "reduce s -> r\nreduce k -> t\nsplit o1 r -> c\n";
  EXPECT_FALSE(rejected(kFixedVariable, spec, std::string(split) + "merge c s -> q m"));
  EXPECT_TRUE(
      rejected(kFixedVariable, spec, std::string(split) + "split c t -> d\nmerge d s -> q m"))
      << "k*H is a new size";
}

TEST(FixedVariable, LeavesOtherVariablesAlone) {
  EXPECT_FALSE(rejected(kFixedVariable, Specification(with_fixed_height()), "merge o0 s -> q m"));
}

}  // namespace
}  // namespace syno
