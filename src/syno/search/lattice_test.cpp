#include "syno/search/lattice.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "syno/search/operators_test.h"

namespace syno {
namespace {

using namespace samples;

// All operators that a walk along edges reaches.
std::set<std::uint32_t> reached(const Lattice& lattice, std::uint32_t node) {
  const auto here = lattice.operators(node);
  std::set<std::uint32_t> found(here.begin(), here.end());
  for (const Lattice::Edge& edge : lattice.children(node))
    found.merge(reached(lattice, edge.child));
  return found;
}

TEST(Lattice, OperatorsBelowANodeAreThoseThatItsEdgesReach) {
  const std::vector<LabeledSteps> operators = labeled(small_operators("search", 5));
  const Lattice lattice(operators);
  EXPECT_EQ(lattice.operator_count(), operators.size());
  EXPECT_GT(lattice.node_count(), operators.size());
  for (std::uint32_t node = 0; node < lattice.node_count(); ++node) {
    const auto below = lattice.below(node);
    const std::set<std::uint32_t> walked = reached(lattice, node);
    EXPECT_TRUE(std::equal(below.begin(), below.end(), walked.begin(), walked.end()));
    EXPECT_FALSE(below.empty());
    for (std::uint32_t op = 0; op < operators.size(); ++op)
      EXPECT_EQ(lattice.is_below(op, node), walked.contains(op));
    EXPECT_EQ(lattice.operators(node).empty(), !lattice.children(node).empty());
  }
  EXPECT_EQ(lattice.below(Lattice::root()).size(), operators.size());
}

TEST(Lattice, EveryOperatorHasALeafOfItsOwn) {
  const std::vector<LabeledSteps> operators = labeled(small_operators("square", 6));
  const Lattice lattice(operators);
  std::size_t leaves = 0;
  for (std::uint32_t node = 0; node < lattice.node_count(); ++node) {
    EXPECT_LE(lattice.operators(node).size(), 1U);
    leaves += lattice.operators(node).size();
  }
  EXPECT_EQ(leaves, operators.size());
}

TEST(Lattice, GraphsThatSeveralPathsReachAreOneNode) {
  const std::vector<LabeledSteps> operators = labeled(small_operators());
  const Lattice lattice(operators);
  std::vector<int> parents(lattice.node_count(), 0);
  for (std::uint32_t node = 0; node < lattice.node_count(); ++node)
    for (const Lattice::Edge& edge : lattice.children(node)) ++parents[edge.child];
  EXPECT_GT(std::count_if(parents.begin(), parents.end(), [](int n) { return n > 1; }), 0);
  EXPECT_EQ(std::count(parents.begin(), parents.end(), 0), 1);  // the root
}

TEST(Lattice, DoesNotDependOnTheOrderOfOperators) {
  std::vector<LabeledSteps> operators = labeled(small_operators("channels", 6));
  const Lattice forward(operators);
  std::reverse(operators.begin(), operators.end());
  const Lattice backward(operators);
  EXPECT_EQ(forward.node_count(), backward.node_count());
  EXPECT_EQ(forward.edge_count(), backward.edge_count());
}

}  // namespace
}  // namespace syno
