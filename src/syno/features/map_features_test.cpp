#include "syno/features/map_features.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

#include "syno/interp/random_graph.h"

namespace syno {
namespace {

using Named = std::map<std::string, double>;

Named features(const Operator& op, const std::string& binding, std::uint64_t seed = 0) {
  const std::vector<double> values =
      map_features(op, Binding::parse(binding).resolve(*op.variables()), {{2, 3}, {2, 3}}, seed);
  Named named;
  for (std::size_t i = 0; i < values.size(); ++i) named[map_feature_list()[i].name] = values[i];
  return named;
}

Operator parse(const std::string& steps) {
  return Operator::parse(
      "syno operator 1\nout [N, C_out: unordered, H, H]\nin [N, C_in: unordered, H, H]\n" + steps);
}

const std::string kSmall = "N=1, C_in=16, C_out=16, H=8, k=3";
const std::string kConvolution =
    "reduce C_in -> r0\nreduce k -> r1\nreduce k -> r2\n"
    "contract o1:drop r0:keep r1:keep r2:keep\nunfold o2 r1 -> c0\nunfold o3 r2 -> c1\n"
    "match o0 r0 c0 c1\n";

TEST(MapFeatures, OfAConvolution) {
  const Named found = features(parse(kConvolution), kSmall);
  EXPECT_EQ(found.at("position_rank"), 1);
  EXPECT_EQ(found.at("mixing_pairs"), 1);
  EXPECT_EQ(found.at("field_positions"), 9);
  EXPECT_EQ(found.at("field_of_pair"), 9);
  EXPECT_EQ(found.at("density"), 1);
  EXPECT_DOUBLE_EQ(found.at("extent_least"), 3.0 / 8);
  EXPECT_NEAR(found.at("offset_greatest"), 0, 0.1);
  // 4 of the 9 taps are inside at a corner.
  EXPECT_NEAR(found.at("corner_response"), 4.0 / 9, 0.05);
  EXPECT_NEAR(found.at("equivariance_greatest"), 0, 1e-6);
  EXPECT_NEAR(found.at("jacobian_share"), 1, 0.1);
  EXPECT_DOUBLE_EQ(found.at("dimension_bound"), std::log(16 * 16 * 9));
  EXPECT_EQ(found.at("second_positions"), 25);
  EXPECT_EQ(found.at("third_positions"), 49);
  EXPECT_EQ(found.at("axes_kept"), 1);
  EXPECT_GT(found.at("position_spectrum"), 0.8);
}

TEST(MapFeatures, OfAWindowAlongOneAxis) {
  const Named found =
      features(parse("reduce C_in -> r0\nreduce k -> r1\ncontract o1:drop r0:keep r1:keep\n"
                     "unfold o2 r1 -> c0\nmatch o0 r0 c0 o3\n"),
               kSmall);
  EXPECT_EQ(found.at("field_positions"), 3);
  EXPECT_DOUBLE_EQ(found.at("extent_least"), 1.0 / 8);
  EXPECT_EQ(found.at("spread_least"), 0);
  EXPECT_EQ(found.at("second_positions"), 5);
}

// The transposed operator mixes along the other axis at every second time.
TEST(MapFeatures, OfAWindowAlongOneAxisWithATransposedResult) {
  const Named found =
      features(parse("reduce C_in -> r0\nreduce k -> r1\ncontract o1:drop r0:keep r1:keep\n"
                     "unfold o2 r1 -> c0\nmatch o0 r0 o3 c0\n"),
               kSmall);
  EXPECT_EQ(found.at("field_positions"), 3);
  EXPECT_EQ(found.at("second_positions"), 9);
  EXPECT_EQ(found.at("third_positions"), 15);
  EXPECT_EQ(found.at("axes_kept"), 0);
}

TEST(MapFeatures, OfABottleneck) {
  const Named found = features(parse("reduce C_in -> r0\nreduce s -> r1\ncontract o1:drop r1:keep\n"
                                     "contract r0:keep r1:join\nmatch o0 r0 o2 o3\n"),
                               "N=1, C_in=16, C_out=16, H=8, s=2");
  EXPECT_DOUBLE_EQ(found.at("position_rank"), 2.0 / 16);
  EXPECT_LE(found.at("position_spectrum"), 2.0 / 16);
  EXPECT_EQ(found.at("field_positions"), 1);
  EXPECT_LT(found.at("jacobian_share"), 1);
}

TEST(MapFeatures, AxesAreNotToldApart) {
  const Named one =
      features(parse("reduce C_in -> r0\nreduce k -> r1\ncontract o1:drop r0:keep r1:keep\n"
                     "shift o3 1 -> c0\nunfold o2 r1 -> c1\nmatch o0 r0 c1 c0\n"),
               kSmall);
  const Named other =
      features(parse("reduce C_in -> r0\nreduce k -> r1\ncontract o1:drop r0:keep r1:keep\n"
                     "shift o2 1 -> c0\nunfold o3 r1 -> c1\nmatch o0 r0 c0 c1\n"),
               kSmall);
  for (const auto& [name, value] : one)
    EXPECT_NEAR(value, other.at(name), 0.05 * (1 + std::abs(value))) << name;
}

TEST(MapFeatures, AreTheSameAgainAndDependOnTheSeedALittle) {
  const Named first = features(parse(kConvolution), kSmall);
  EXPECT_EQ(first, features(parse(kConvolution), kSmall));
  const Named other = features(parse(kConvolution), kSmall, 1);
  EXPECT_NE(first, other);
  for (const auto& [name, value] : first)
    EXPECT_NEAR(value, other.at(name), 0.2 * (1 + std::abs(value))) << name;
}

TEST(MapFeatures, AreFiniteForRandomOperators) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomOptions options;
    options.max_terms = 300;
    const RandomOperator drawn = random_operator(seed, options);
    const Operator& op = drawn.op;
    const auto last = static_cast<int>(std::min(op.input().size(), op.output().size())) - 1;
    std::vector<int> axes;
    if (last >= 0) axes.push_back(last);
    const Values values = drawn.binding.resolve(*op.variables());
    for (const double value : map_features(op, values, {axes, axes}))
      EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace syno
