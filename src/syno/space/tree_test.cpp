#include "syno/space/tree.h"

#include <functional>
#include <gtest/gtest.h>
#include <set>

#include "syno/space/small_spaces_test.h"

namespace syno {
namespace {

SpecificationSource square() {
  return samples::windows_over_two(6);
}

Space enumerated(const Specification& spec, std::int64_t depth) {
  EnumerateOptions options;
  options.max_nodes = 1'000'000;
  options.max_depth = depth;
  return enumerate_space(spec, options);
}

TEST(Tree, ExpandsToTheEnumerationAndItsCountsAddUp) {
  const Specification spec(square());
  const Space space = enumerated(spec, 0);
  Tree tree(spec, RuleSet(), 0, &space);
  ASSERT_TRUE(tree.exact());
  std::multiset<Hash128> keys;
  std::size_t nodes = 0;
  const std::function<void(const TreeNode&)> expand = [&](const TreeNode& node) {
    ++nodes;
    auto sum = static_cast<std::int64_t>(tree.operators(node).size());
    for (const FoundOperator& found : tree.operators(node)) keys.insert(found.key);
    for (const TreeNode& child : tree.children(node)) {
      EXPECT_TRUE(child.exact);
      EXPECT_FALSE(child.step.empty());
      EXPECT_LE(child.graph.depth() + child.least_steps, 6);
      sum += child.count;
      expand(child);
    }
    EXPECT_EQ(sum, node.count);
    // What is below takes at least the steps that the bound says.
    EXPECT_TRUE(node.least_steps == 0 || tree.operators(node).empty());
  };
  expand(tree.root());
  EXPECT_EQ(nodes, space.node_count());
  std::multiset<Hash128> wanted;
  for (const SpaceOperator& found : space.operators) wanted.insert(found.key);
  EXPECT_EQ(keys, wanted);
  EXPECT_EQ(tree.root().count, static_cast<std::int64_t>(space.operator_count()));
}

// Without an enumeration, or with one of smaller depth, children are all live steps; told apart by their fingerprints, they are the
// same graphs and operators.
TEST(Tree, ExpandsToTheSameOperatorsByLiveStepsAlone) {
  const Specification spec(square());
  const Space space = enumerated(spec, 0);
  const Space shallow = enumerated(spec, 4);
  std::set<Hash128> wanted;
  for (const SpaceOperator& found : space.operators) wanted.insert(found.key);
  for (const Space* known : {static_cast<const Space*>(nullptr), &shallow}) {
    Tree tree(spec, RuleSet(), 0, known);
    EXPECT_FALSE(tree.exact());
    std::set<Hash128> fingerprints;
    std::set<Hash128> keys;
    std::int64_t known_operators = 0;
    const std::function<void(const TreeNode&)> expand = [&](const TreeNode& node) {
      if (!fingerprints.insert(node.fingerprint).second) return;
      std::int64_t sum = 0;
      for (const FoundOperator& found : tree.operators(node)) {
        keys.insert(found.key);
        EXPECT_EQ(node.least_steps, 0);
      }
      for (const TreeNode& child : tree.children(node)) {
        sum += child.count;
        expand(child);
      }
      EXPECT_LE(sum, node.count);
      known_operators = std::max(known_operators, node.count);
    };
    expand(tree.root());
    EXPECT_EQ(fingerprints.size(), space.node_count());
    EXPECT_EQ(keys, wanted);
    EXPECT_EQ(known_operators,
              known == nullptr ? 0 : static_cast<std::int64_t>(shallow.operator_count()));
  }
}

}  // namespace
}  // namespace syno
