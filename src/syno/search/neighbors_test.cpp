#include "syno/search/neighbors.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "syno/search/operators_test.h"

namespace syno {
namespace {

using namespace samples;

TEST(Neighbors, AreTheNearestOfAllOperators) {
  const std::vector<LabeledSteps> operators = labeled(small_operators());
  ASSERT_GT(operators.size(), 20U);
  const Neighbors neighbors(operators);
  for (std::uint32_t op = 0; op < operators.size(); ++op) {
    const std::vector<Neighbor>& found = neighbors.nearest(op, 5);
    ASSERT_GE(found.size(), 5U);
    std::vector<bool> is_found(operators.size(), false);
    for (const Neighbor& each : found) {
      EXPECT_EQ(each.distance, neighbors.distance(op, each.op));
      EXPECT_LE(each.distance, found.back().distance);
      is_found[each.op] = true;
    }
    EXPECT_FALSE(is_found[op]);
    for (std::uint32_t other = 0; other < operators.size(); ++other) {
      if (other == op || is_found[other]) continue;
      EXPECT_GT(neighbors.distance(op, other), found.back().distance);
    }
  }
}

TEST(Neighbors, DistanceIsAMetric) {
  const std::vector<LabeledSteps> operators = labeled(small_operators());
  const Neighbors neighbors(operators);
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(operators.size(), 25));
  for (std::uint32_t a = 0; a < count; ++a) {
    EXPECT_EQ(neighbors.distance(a, a), 0U);
    for (std::uint32_t b = 0; b < count; ++b) {
      EXPECT_EQ(neighbors.distance(a, b), neighbors.distance(b, a));
      for (std::uint32_t c = 0; c < count; ++c)
        EXPECT_LE(neighbors.distance(a, c), neighbors.distance(a, b) + neighbors.distance(b, c));
    }
  }
}

TEST(Neighbors, AStepMoreIsNearerThanAnotherOperator) {
  const char* const head =
      "syno operator 1\nout [N, C_out: unordered, H]\nin [N, C_in: unordered, H]\n";
  const std::string plain =
      std::string(head) +
      "reduce C_in -> r0\nreduce k -> r1\n"
      "contract o1:drop r0:keep r1:keep\nunfold o2 r1 -> c0\nmatch o0 r0 c0\n";
  const std::string shifted =
      std::string(head) +
      "reduce C_in -> r0\nreduce k -> r1\ncontract o1:drop r0:keep r1:keep\n"
      "unfold o2 r1 -> c0\nshift c0 1 -> c1\nmatch o0 r0 c1\n";
  const std::string pointwise =
      std::string(head) + "reduce C_in -> r0\ncontract o1:drop r0:keep\nmatch o0 r0 o2\n";
  const Neighbors neighbors(
      labeled({Operator::parse(plain), Operator::parse(shifted), Operator::parse(pointwise)}));
  EXPECT_LT(neighbors.distance(0, 1), neighbors.distance(0, 2));
  EXPECT_EQ(neighbors.nearest(0, 1).front().op, 1U);
}

}  // namespace
}  // namespace syno
