#include "syno/search/moves.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/support/golden_test.h"
#include "syno/support/hash.h"

namespace syno {
namespace {

// By custom, coefficients have lower-case names.
Coefficients coefficients(const Binding& binding, const Operator& op) {
  Coefficients sizes;
  for (const auto& [name, value] : binding.values()) {
    if (std::islower(static_cast<unsigned char>(name.front())) != 0 && op.variables()->find(name))
      sizes.emplace_back(name, value);
  }
  return sizes;
}

std::vector<MovedOperator> moved(const ZooText& zoo) {
  const Operator op = Operator::parse(zoo.text);
  return moved_operators(op, coefficients(Binding::parse(zoo.binding), op));
}

std::string shapes(const Operator& op) {
  return shape_text(op.input(), *op.variables()) + " -> " +
         shape_text(op.output(), *op.variables());
}

void expect_neighbors(const Operator& op, const std::vector<MovedOperator>& found) {
  for (const MovedOperator& near : found) {
    EXPECT_EQ(shapes(near.op), shapes(op));
    EXPECT_EQ(Operator::parse(near.op.text()), near.op);
    for (const auto& [name, value] : near.sizes) EXPECT_TRUE(near.op.variables()->find(name));
  }
}

bool leads_to(const std::vector<MovedOperator>& found, const Operator& op) {
  return std::any_of(found.begin(), found.end(),
                     [&](const MovedOperator& near) { return near.op == op; });
}

TEST(Moves, LeadToOperatorsOfTheSameShapes) {
  for (const ZooText& zoo : kZooTexts) {
    SCOPED_TRACE(zoo.name);
    expect_neighbors(Operator::parse(zoo.text), moved(zoo));
  }
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const RandomOperator sampled = random_operator(seed);
    const auto near = moved_operators(sampled.op, coefficients(sampled.binding, sampled.op));
    expect_neighbors(sampled.op, near);
    found += near.size();
  }
  EXPECT_GT(found, 400U);
}

TEST(Moves, ChangeIndicesAndWindows) {
  const std::vector<MovedOperator> found = moved(kConv2d);
  const auto expect_steps = [&](const std::string& steps, const std::string& match) {
    const Operator wanted = Operator::parse(
        "syno operator 1\nout [N, C_out: unordered, H, W]\nin [N, C_in: unordered, H, W]\n" +
        steps + match);
    EXPECT_TRUE(leads_to(found, wanted)) << wanted.text();
  };
  expect_steps(
      "reduce C_in -> r0\nreduce k -> r1\ncontract o1:drop r0:keep r1:keep\n"
      "unfold o3 r1 -> c0\n",
      "match o0 r0 o2 c0\n");
  expect_steps(
      "reduce C_in -> r0\nreduce k -> r1\nreduce k -> r2\n"
      "contract o1:drop r1:keep r2:keep\nunfold o2 r1 -> c0\nunfold o3 r2 -> c1\n",
      "match o0 r0 c0 c1\n");
  expect_steps(
      "reduce C_in -> r0\nreduce k -> r1\nreduce k -> r2\n"
      "contract o1:drop r0:keep r1:keep r2:keep\nstride r1 s -> c0\n"
      "unfold o2 c0 -> c1\nunfold o3 r2 -> c2\n",
      "match o0 r0 c1 c2\n");
}

TEST(Moves, ChangeOneValueWithinTheLimits) {
  const Operator op = Operator::parse(kConv2d.text);
  std::set<std::int64_t> windows;
  for (const MovedOperator& near : moved_operators(op, {{"k", 3}}))
    if (near.op == op) windows.insert(near.sizes.at(0).second);
  EXPECT_EQ(windows, std::set<std::int64_t>({5}));
  MoveOptions options;
  options.windows = {3, 7, 9};
  options.largest = 8;
  windows.clear();
  for (const MovedOperator& near : moved_operators(op, {{"k", 3}}, options))
    if (near.op == op) windows.insert(near.sizes.at(0).second);
  EXPECT_EQ(windows, std::set<std::int64_t>({7}));
}

TEST(Moves, LeadFromOneConvolutionToTheOtherAndBack) {
  const Operator small = Operator::parse(kConv1x1.text);
  const Operator large = Operator::parse(kConv2d.text);
  const auto reach = [](const Operator& from, const Operator& to) {
    const std::vector<MovedOperator> near = moved_operators(from, {});
    EXPECT_FALSE(leads_to(near, to));
    return std::any_of(near.begin(), near.end(), [&](const MovedOperator& each) {
      return leads_to(moved_operators(each.op, each.sizes), to);
    });
  };
  EXPECT_TRUE(reach(small, large));
  EXPECT_TRUE(reach(large, small));
}

TEST(Moves, AndTheirOrderAreTheOnesInGit) {
  std::string text =
      "# Written by syno_search_tests (Moves.AndTheirOrderAreTheOnesInGit) with "
      "SYNO_UPDATE_GOLDEN=1.\n# The moves of each operator of the zoo: how many, and a hash of "
      "their operators and values in order.\n";
  for (const ZooText& zoo : kZooTexts) {
    const std::vector<MovedOperator> found = moved(zoo);
    Hasher hasher("moves");
    for (const MovedOperator& near : found) {
      hasher.add(std::string_view(near.op.text()));
      for (const auto& [name, value] : near.sizes) hasher.add(std::string_view(name)).add(value);
    }
    text += zoo.name + " " + std::to_string(found.size()) + " " +
            hasher.finish().hex().substr(0, 8) + "\n";
  }
  expect_golden("tests/golden/search/moves.txt", text,
                "moves have changed, and with them what an adaptation draws for a seed; if they "
                "are meant to, run\n  SYNO_UPDATE_GOLDEN=1 build/release/syno_search_tests "
                "--gtest_filter='Moves.*'");
}

}  // namespace
}  // namespace syno
