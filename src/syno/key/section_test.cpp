// Sections, and that a Keyer gives every operator its own key whatever it was asked before.
#include "syno/key/section.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/key/key.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

key::Sections sections_of(const Operator& op) {
  key::Sections sections;
  sections.read(op.graph(), op.input(), op.match(), false);
  return sections;
}

TEST(Sections, AreWhatNoStepJoins) {
  const Operator conv = Operator::parse(kConv2d.text);
  const key::Sections sections = sections_of(conv);
  // N, C_out, H with its window, W with its window, C_in.
  ASSERT_EQ(sections.count(), 5U);
  std::multiset<std::size_t> sizes;
  std::size_t held = 0;
  for (std::size_t s = 0; s < sections.count(); ++s) {
    const key::Section section = sections.section(s);
    sizes.insert(section.coordinates.size());
    held += section.weights;
    EXPECT_EQ(section.weights, sections.weights(s).size());
  }
  EXPECT_EQ(sizes, (std::multiset<std::size_t>{1, 1, 1, 3, 3}));
  EXPECT_EQ(held, 4U);  // all but N
}

TEST(Sections, EqualOnesOfDifferentOperatorsHaveOneHash) {
  const Operator conv = Operator::parse(kConv2d.text);
  const Operator depthwise = Operator::parse(kDepthwise.text);
  const auto hashes = [](const Operator& op) {
    const key::Sections sections = sections_of(op);
    std::vector<std::uint64_t> outputs;
    for (const Dimension& dim : op.output()) outputs.push_back(dim.size.hash(*op.variables()));
    std::vector<std::uint64_t> steps;
    for (const Step& step : op.graph().steps()) steps.push_back(step.size.hash(*op.variables()));
    std::set<Hash128> all;
    for (std::size_t s = 0; s < sections.count(); ++s)
      all.insert(sections.hash(s, {outputs, steps}));
    return all;
  };
  const std::set<Hash128> a = hashes(conv);
  const std::set<Hash128> b = hashes(depthwise);
  std::vector<Hash128> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  EXPECT_EQ(a.size(), 5U);
  EXPECT_EQ(b.size(), 4U);
  EXPECT_EQ(common.size(), 3U);  // N and both windows
}

// The same operator with its steps in another order and its reductions under other names.
struct Shuffled {
  Graph graph;
  std::vector<CoordinateId> match;
};
Shuffled shuffled(const Operator& op, CounterRandom& random) {
  const auto& steps = op.graph().steps();
  const auto used = [](const Step& step) {
    std::set<CoordinateId> all;
    for (const CoordinateId id : step.in) all.insert(id);
    for (const CoordinateId id : step.out) all.insert(id);
    for (const WeightDim& dim : step.dims) all.insert(dim.coordinate);
    all.erase(kNoCoordinate);
    return all;
  };
  // Steps with a coordinate in common keep their order.
  std::vector<std::vector<std::size_t>> after(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::set<CoordinateId> mine = used(steps[i]);
    for (std::size_t j = 0; j < i; ++j) {
      const std::set<CoordinateId> other = used(steps[j]);
      if (std::any_of(mine.begin(), mine.end(),
                      [&](CoordinateId id) { return other.contains(id); }))
        after[i].push_back(j);
    }
  }
  Graph graph(op.variables(), op.output());
  std::vector<CoordinateId> renamed(op.graph().coordinates().size(), kNoCoordinate);
  for (std::size_t d = 0; d < op.output().size(); ++d) renamed[d] = static_cast<CoordinateId>(d);
  std::set<std::size_t> taken;
  while (taken.size() < steps.size()) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const bool free = std::all_of(after[i].begin(), after[i].end(),
                                    [&](std::size_t j) { return taken.contains(j); });
      if (free && !taken.contains(i)) ready.push_back(i);
    }
    const std::size_t chosen = ready[random.below(ready.size())];
    taken.insert(chosen);
    Step step = steps[chosen];
    for (CoordinateId& id : step.in) {
      if (id != kNoCoordinate) id = renamed[static_cast<std::size_t>(id)];
    }
    for (WeightDim& dim : step.dims)
      dim.coordinate = renamed[static_cast<std::size_t>(dim.coordinate)];
    step.out = {kNoCoordinate, kNoCoordinate};
    const Step applied = graph.apply(step);
    for (std::size_t i = 0; i < 2; ++i) {
      if (steps[chosen].out[i] != kNoCoordinate)
        renamed[static_cast<std::size_t>(steps[chosen].out[i])] = applied.out[i];
    }
  }
  Shuffled result{std::move(graph), {}};
  for (const CoordinateId id : op.match())
    result.match.push_back(renamed[static_cast<std::size_t>(id)]);
  return result;
}

// Operators over one table of variables, and bindings that fit some of them.
struct Population {
  VariablesPtr variables;
  std::vector<Operator> operators;
  std::vector<Values> bindings;
};
Population population(int count) {
  RandomOptions options;
  options.unordered = 0.3;
  options.causal_windows = 0.2;
  options.bindings = 3;
  std::vector<RandomOperator> sampled;
  std::set<std::string> names;
  for (int seed = 0; seed < count; ++seed) {
    sampled.push_back(random_operator(static_cast<std::uint64_t>(seed), options));
    for (const auto& [name, value] : sampled.back().binding.values()) names.insert(name);
  }
  Population result;
  result.variables = Variables::make({names.begin(), names.end()});
  for (const RandomOperator& one : sampled) {
    result.operators.push_back(one.op);
    if (result.bindings.size() >= 6) continue;
    for (const Binding& binding : one.bindings)
      result.bindings.push_back(binding.resolve(*result.variables));
  }
  return result;
}

TEST(Keyer, GivesTheSameKeysInAnyOrderAsAlone) {
  const Population all = population(1500);
  std::vector<Hash128> alone;
  for (const Operator& op : all.operators)
    alone.push_back(semantic_key(op.in_table(all.variables), all.bindings));
  EXPECT_GT(std::set<Hash128>(alone.begin(), alone.end()).size(), 1000U);
  CounterRandom random(11, 4);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::size_t> order(all.operators.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    Keyer keyer(all.variables, all.bindings);
    for (const std::size_t i : order) {
      const Operator& op = all.operators[i];
      // Operators may come in their own table or in that of the Keyer.
      ASSERT_EQ(keyer.key(random.below(2) == 0 ? op : op.in_table(all.variables)), alone[i])
          << op.text();
    }
    EXPECT_EQ(keyer.counts().operators, static_cast<std::int64_t>(all.operators.size()));
    EXPECT_LT(keyer.counts().sections, 4 * keyer.counts().operators);
  }
}

TEST(Keyer, DoesNotSeeTheOrderOfSteps) {
  const Population all = population(600);
  Keyer keyer(all.variables, all.bindings);
  CounterRandom random(12, 4);
  for (const Operator& op : all.operators) {
    const Hash128 key = keyer.key(op);
    for (int round = 0; round < 4; ++round) {
      const Shuffled other = shuffled(op, random);
      ASSERT_EQ(Operator(other.graph, op.input(), other.match), op);
      ASSERT_EQ(keyer.key(other.graph, op.input(), other.match), key) << op.text();
    }
  }
}

TEST(Keyer, BringsEachSectionIntoNormalFormOnce) {
  const Operator conv = Operator::parse(kConv2d.text);
  const auto binding = [&](const char* text) {
    return Binding::parse(text).resolve(*conv.variables());
  };
  Keyer keyer(conv.variables(), {binding("N=1, C_in=4, C_out=6, H=8, W=8, k=3"),
                                 binding("N=1, C_in=8, C_out=6, H=4, W=4, k=3")});
  keyer.key(conv);
  EXPECT_EQ(keyer.counts().sections, 5);
  // N, C_out, two of C_in, H and W for two heights: dimensions 2 and 3 are not the same.
  EXPECT_EQ(keyer.counts().normal_forms, 8);
  keyer.key(conv);
  EXPECT_EQ(keyer.counts().normal_forms, 8);
  EXPECT_EQ(keyer.counts().operators, 2);
  EXPECT_EQ(keyer.counts().fallbacks, 0);
}

TEST(Keyer, WeightsHaveNoOrderWhateverSectionsTheyHold) {
  // A chain of three weights over two inner indices: exchanging them is renaming.
  const std::string head =
      "syno operator 1\nout [D, H]\nin [C, H]\nreduce C -> r0\nreduce k -> r1\n";
  const Operator a = Operator::parse(head +
                                     "contract o0:drop r1:keep\ncontract r1:join r0:keep\n"
                                     "contract o1:keep r0:keep\nmatch r0 o1\n");
  const Operator b = Operator::parse(head +
                                     "contract o1:keep r0:keep\ncontract r1:keep r0:keep\n"
                                     "contract o0:drop r1:join\nmatch r0 o1\n");
  const Values values = Binding::parse("D=4, H=8, C=6, k=3").resolve(*a.variables());
  EXPECT_EQ(semantic_key(a, {values}), semantic_key(b, {values}));
  const Operator c = Operator::parse(head +
                                     "contract o0:drop r1:keep\ncontract r1:join r0:keep\n"
                                     "contract o1:keep\nmatch r0 o1\n");
  EXPECT_NE(semantic_key(a, {values}), semantic_key(c, {values}));
}

TEST(Keyer, RefusesAnOperatorOfOtherVariables) {
  const Operator conv = Operator::parse(kConv2d.text);
  Keyer keyer(Variables::make({"H"}), {{4}});
  EXPECT_THROW(keyer.key(conv), UserError);
}

}  // namespace
}  // namespace syno
