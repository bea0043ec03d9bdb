#include "syno/space/walks.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/space/live_steps.h"
#include "syno/space/small_spaces_test.h"
#include "syno/spec/presets.h"

namespace syno {
namespace {

SpecificationSource conv1d() {
  return samples::small_space("conv1d").source;
}

SpecificationSource square_map() {
  return samples::windows_over_two(7);
}

/// Merges and element-wise weights.
SpecificationSource channels() {
  SpecificationSource source;
  source.input = "[I: unordered, H]";
  source.output = "[O: unordered, H]";
  source.primary = {"I: 2", "O: 2", "H: 1"};
  source.coefficient = {"g=2: 2", "k=3: 1"};
  source.bindings = {Binding::parse("I=4, O=8, H=9")};
  source.limits.max_depth = 6;
  source.limits.max_merges = 2;
  source.limits.element_wise_weights = true;
  return source;
}

Space enumerated(const Specification& spec) {
  EnumerateOptions options;
  options.max_nodes = 1'000'000;
  Space space = enumerate_space(spec, options);
  EXPECT_TRUE(space.exhausted);
  return space;
}

std::set<Hash128> keys(const Space& space) {
  std::set<Hash128> all;
  for (const SpaceOperator& found : space.operators) all.insert(found.key);
  return all;
}

TEST(Walks, FindOperatorsOfTheSpaceAndInTheEndAllOfThem) {
  const Specification spec(conv1d());
  WalkOptions options;
  options.walks = 1000;
  options.width = 8;
  const Walks walks = random_walks(spec, options);
  std::set<Hash128> met;
  for (const WalkedOperator& found : walks.operators) met.insert(found.key);
  EXPECT_EQ(met.size(), walks.operators.size());
  EXPECT_EQ(met, keys(enumerated(spec)));
  EXPECT_GT(walks.coverage(), 0.99);
  EXPECT_LT(walks.at_least(), static_cast<double>(met.size()) + 1);
}

// Four standard errors: seeds are fixed, but other rules make other spaces. They must be small enough to say something.
TEST(Walks, EstimateTheSizeOfTheSpace) {
  for (const SpecificationSource& source : {conv1d(), square_map(), channels()}) {
    const Specification spec(source);
    const Space space = enumerated(spec);
    const auto exact = static_cast<double>(space.structures);
    for (const std::uint64_t seed : {1, 2, 3}) {
      WalkOptions options;
      options.walks = 2000;
      options.width = 16;
      options.seed = seed;
      const Walks walks = random_walks(spec, options);
      EXPECT_NEAR(walks.structures, exact, 4 * walks.structures_error)
          << spec.text() << " seed " << seed;
      EXPECT_LT(walks.structures_error, 0.1 * exact) << spec.text() << " seed " << seed;
      double weight = 0;
      for (const WalkedOperator& found : walks.operators) weight += found.weight;
      EXPECT_NEAR(weight, walks.structures, 1e-9 * exact);
      const std::set<Hash128> all = keys(space);
      for (const WalkedOperator& found : walks.operators) EXPECT_TRUE(all.contains(found.key));
    }
  }
}

TEST(Walks, WeighOperatorsSoThatSharesOfTheSpaceAreEstimated) {
  const Specification spec(square_map());
  const Space space = enumerated(spec);
  const auto two_weights = [](const Operator& op) { return op.graph().weights().size() == 2; };
  double exact = 0;
  for (std::size_t i = 0; i < space.operator_count(); ++i) exact += two_weights(space.op(spec, i));
  exact /= static_cast<double>(space.operator_count());
  WalkOptions options;
  options.walks = 3000;
  options.width = 20;
  double wanted = 0;
  double all = 0;
  for (const WalkedOperator& found : random_walks(spec, options).operators) {
    wanted += two_weights(found.op) ? found.weight : 0;
    all += found.weight;
  }
  EXPECT_NEAR(wanted / all, exact, 0.05);
}

TEST(Walks, AreTheSameForOneSeedAndAnyNumberOfThreads) {
  const Specification spec(square_map());
  WalkOptions options;
  options.walks = 300;
  options.width = 10;
  options.seed = 7;
  const Walks first = random_walks(spec, options);
  options.threads = 3;
  const Walks second = random_walks(spec, options);
  ASSERT_EQ(first.operators.size(), second.operators.size());
  for (std::size_t i = 0; i < first.operators.size(); ++i) {
    EXPECT_EQ(first.operators[i].op.text(), second.operators[i].op.text());
    EXPECT_EQ(first.operators[i].weight, second.operators[i].weight);
  }
  EXPECT_EQ(first.structures, second.structures);
  options.seed = 8;
  const Walks other = random_walks(spec, options);
  EXPECT_NE(other.structures, first.structures);
}

TEST(Walks, EndWhereTheyAreTold) {
  const Specification spec(square_map());
  WalkOptions options;
  options.width = 5;
  options.max_operators = 5;
  const Walks few = random_walks(spec, options);
  EXPECT_GE(few.operators.size(), 5U);
  EXPECT_LT(few.walks, options.walks);
  options.max_operators = 0;
  options.max_depth = 4;
  for (const WalkedOperator& found : random_walks(spec, options).operators)
    EXPECT_LE(found.depth, 4);
  std::int64_t rounds = 0;
  const Walks stopped = random_walks(spec, options, [&](const Walks&) { return ++rounds < 2; });
  EXPECT_EQ(rounds, 2);
  EXPECT_LT(stopped.walks, options.walks);
  options.max_seconds = 1e-9;
  EXPECT_LT(random_walks(spec, options).walks, 100);
}

TEST(Walks, ReachTheDepthOfThePaper) {
  const Specification spec(preset("paper/resnet18"));
  WalkOptions options;
  options.walks = 1024;
  const Walks walks = random_walks(spec, options);
  EXPECT_GE(walks.operators.size(), 5U);
  int deepest = 0;
  for (const WalkedOperator& found : walks.operators) deepest = std::max(deepest, found.depth);
  EXPECT_GE(deepest, 7);
}

TEST(Walks, CoverageCountsSingletons) {
  Walks walks;
  EXPECT_EQ(walks.coverage(), 0);
  walks.accepted = 10;
  walks.singletons = 4;
  walks.doubletons = 2;
  walks.operators.resize(7);
  EXPECT_EQ(walks.coverage(), 0) << "one flock says nothing about others";
  walks.populations = 5;
  EXPECT_DOUBLE_EQ(walks.coverage(), 0.6);
  EXPECT_DOUBLE_EQ(walks.at_least(), 7 + 0.8 * 4 * 3 / 6.0);
}

// Every graph of an enumeration is reached over as many parents as are enumerated before it.
TEST(LiveSteps, AreThoseOfAnEnumeration) {
  const Specification spec(square_map());
  const RuleSet rules;
  const int limit = 5;
  EnumerateOptions options;
  options.first_depth = options.max_depth = limit;
  options.max_nodes = 1'000'000;
  const Space space = enumerate_space(spec, options);
  LiveSteps steps(spec, rules, BoundMode::kFull);
  std::map<Hash128, std::set<Hash128>> parents;
  std::vector<Position> level{steps.root()};
  std::set<Hash128> met{steps.fingerprint(level.front())};
  for (int depth = 0; depth < limit; ++depth) {
    std::vector<Position> next;
    for (const Position& here : level) {
      for (const LiveMove& live : steps.from(here, limit)) {
        parents[live.fingerprint].insert(steps.fingerprint(here));
        if (!met.insert(live.fingerprint).second) continue;
        next.push_back(here);
        steps.take(next.back(), steps.step(here, live.move));
        EXPECT_EQ(steps.fingerprint(next.back()), live.fingerprint);
      }
    }
    level = std::move(next);
  }
  EXPECT_EQ(met.size(), space.node_count());
  Parents counted(steps, limit);
  for (std::uint32_t node = 1; node < space.node_count(); node += 3) {
    const Graph graph = space.graph(spec, node);
    const Hash128 fingerprint = steps.fingerprint(steps.position(graph));
    EXPECT_EQ(counted.count(graph, fingerprint), static_cast<int>(parents.at(fingerprint).size()));
  }
  EXPECT_EQ(counted.count(space.graph(spec, 0), steps.fingerprint(steps.root())), 0);
}

// The whole space in one population: nothing is left to chance.
TEST(Walks, EnumerateASpaceThatIsSmallerThanAPopulation) {
  const Specification spec(conv1d());
  const Space space = enumerated(spec);
  WalkOptions options;
  options.width = options.walks = 100'000;
  const Walks walks = random_walks(spec, options);
  EXPECT_EQ(walks.populations, 1);
  EXPECT_EQ(walks.operators.size(), space.operator_count());
  EXPECT_NEAR(walks.structures, static_cast<double>(space.structures), 1e-9);
}

TEST(LiveSteps, BoundTheStepsThatAreMissing) {
  const Specification spec(conv1d());
  const RuleSet rules;
  LiveSteps steps(spec, rules, BoundMode::kFull);
  const Position root = steps.root();
  const int least = steps.least_steps(root, 5);
  EXPECT_GE(least, 1);
  EXPECT_LE(least, 2) << "a Reduce and a contraction make an operator";
  EXPECT_FALSE(steps.may_end(root));
  EXPECT_EQ(steps.least_steps(root, 0), 1) << "more than none";
}

}  // namespace
}  // namespace syno
