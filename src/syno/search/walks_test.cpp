#include "syno/search/walks.h"

#include <gtest/gtest.h>
#include <set>

#include "syno/spec/presets.h"

namespace syno {
namespace {

SpecificationSource small() {
  SpecificationSource source;
  source.input = "[N, I: unordered, H]";
  source.output = "[N, O: unordered, H]";
  source.primary = {"N: 0", "I: 1", "O: 1", "H: 0"};
  source.coefficient = {"k=3: 1", "s=2: 1"};
  source.bindings = {Binding({{"I", 4}, {"O", 8}, {"H", 8}})};
  source.passed_through = {{0, 0}};
  source.limits.max_depth = 5;
  return source;
}

TEST(Walks, FindOperatorsOfTheSpaceAndInTheEndAllOfThem) {
  const Specification spec(small());
  std::set<Hash128> listed;
  for (const FoundOperator& found : enumerate(spec, EnumerateOptions()).operators)
    listed.insert(found.key);
  WalkOptions options;
  options.walks = 4000;
  const Walks walks = random_walks(spec, options);
  std::set<Hash128> met;
  for (const FoundOperator& found : walks.operators) met.insert(found.key);
  EXPECT_EQ(met.size(), walks.operators.size());
  EXPECT_EQ(met, listed);
  EXPECT_GT(walks.coverage(), 0.99);
  EXPECT_LT(walks.at_least(), static_cast<double>(listed.size()) + 1);
  EXPECT_GT(walks.completed, walks.walks / 2) << "the bound leaves few dead ends";
}

TEST(Walks, AreTheSameForOneSeed) {
  const Specification spec(small());
  WalkOptions options;
  options.walks = 50;
  options.seed = 7;
  const Walks first = random_walks(spec, options);
  const Walks second = random_walks(spec, options);
  ASSERT_EQ(first.operators.size(), second.operators.size());
  for (std::size_t i = 0; i < first.operators.size(); ++i)
    EXPECT_EQ(first.operators[i].op.text(), second.operators[i].op.text());
  options.seed = 8;
  options.walks = 5;
  const Walks other = random_walks(spec, options);
  options.seed = 7;
  const Walks same = random_walks(spec, options);
  EXPECT_TRUE(other.operators.empty() || same.operators.empty() ||
              other.operators[0].key != same.operators[0].key || other.accepted > 0);
}

TEST(Walks, ReachTheDepthOfThePaper) {
  const Specification spec(preset("paper/resnet18"));
  WalkOptions options;
  options.walks = 60;
  const Walks walks = random_walks(spec, options);
  EXPECT_GT(walks.operators.size(), 3U);
  EXPECT_GE(walks.completed, 15);
}

TEST(Walks, CoverageCountsSingletons) {
  Walks walks;
  EXPECT_EQ(walks.coverage(), 0);
  walks.accepted = 10;
  walks.singletons = 4;
  walks.doubletons = 2;
  walks.operators.resize(7);
  EXPECT_DOUBLE_EQ(walks.coverage(), 0.6);
  EXPECT_DOUBLE_EQ(walks.at_least(), 7 + 4 * 3 / 6.0);
}

}  // namespace
}  // namespace syno
