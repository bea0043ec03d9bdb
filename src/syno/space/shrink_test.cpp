#include "syno/space/shrink_test.h"

#include <gtest/gtest.h>

#include "syno/space/small_spaces_test.h"

namespace syno {
namespace {

using namespace samples;

// A fault that needs an unordered dimension and two Merges, in the midst of everything else.
std::string planted(const SpecificationSource& source) {
  const Specification spec(source);
  for (const Dimension& dim : spec.output()) {
    if (dim.unordered && spec.limits().max_merges >= 2) return "it fails";
  }
  return "";
}

TEST(Shrinker, LeavesWhatAFaultNeedsAndNoMore) {
  int met = 0;
  for (std::uint64_t seed = 0; seed < 200 && met < 20; ++seed) {
    const auto source = RandomSpecification(seed).source();
    if (!source || planted(*source).empty()) continue;
    ++met;
    const std::string found = Shrinker(planted).explain(*source);
    // max_merges is 1 unless something is said.
    EXPECT_NE(found.find(": unordered]; "), std::string::npos) << found;
    EXPECT_NE(found.find("max_merges=2"), std::string::npos) << found;
    EXPECT_TRUE(found.starts_with("[] -> [")) << found;
    EXPECT_EQ(found.find("max_weights"), std::string::npos) << found;
    EXPECT_EQ(found.find("{C=4} {"), std::string::npos) << found;
    EXPECT_TRUE(found.ends_with("\nit fails")) << found;
    EXPECT_LT(found.size(), describe(*source).size()) << found;
  }
  EXPECT_EQ(met, 20);
}

}  // namespace
}  // namespace syno
