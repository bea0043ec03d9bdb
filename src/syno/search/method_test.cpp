// What every search method keeps to, with a fake evaluator.
#include "syno/search/method.h"

#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "syno/search/evolution.h"
#include "syno/search/graph_search.h"
#include "syno/search/local_search.h"
#include "syno/search/operators_test.h"
#include "syno/search/tree_search.h"
#include "syno/support/error.h"
#include "syno/support/golden_test.h"

namespace syno {
namespace {

using namespace samples;

struct Fixture {
  std::vector<Operator> found = small_operators();
  std::vector<LabeledSteps> operators = labeled(found);
  std::shared_ptr<const std::vector<LabeledSteps>> shared =
      std::make_shared<const std::vector<LabeledSteps>>(operators);
  std::shared_ptr<const Neighbors> neighbors = std::make_shared<const Neighbors>(operators);
  std::shared_ptr<const Lattice> lattice = std::make_shared<const Lattice>(operators);

  // One operator in eight fails.
  bool fails(std::uint32_t op) const { return mix_bits(operators[op].back().from_output) % 8 == 0; }
  double value(std::uint32_t op) const { return fake_value(operators[op]); }
  void tell(SearchMethod& method, std::uint32_t op) const {
    if (fails(op))
      method.fail(op);
    else
      method.answer(op, value(op));
  }
};

const Fixture& fixture() {
  static const Fixture made;
  return made;
}

struct Made {
  std::string name;
  std::function<std::unique_ptr<SearchMethod>(std::uint64_t seed)> make;
  /// Whether proposals depend on the order of answers among proposals.
  bool ordered = false;
};

std::vector<Made> methods() {
  return {
      {"local",
       [](std::uint64_t seed) {
         return std::make_unique<LocalSearch>(fixture().neighbors, seed, LocalSearchOptions());
       }},
      {"evolution",
       [](std::uint64_t seed) {
         EvolutionOptions options;
         options.population = 8;
         options.tournament = 4;
         return std::make_unique<Evolution>(fixture().neighbors, seed, options);
       }},
      {"tree",
       [](std::uint64_t seed) {
         return std::make_unique<TreeSearch>(fixture().lattice, fixture().shared, seed,
                                             TreeSearchOptions());
       },
       true},
      {"graph",
       [](std::uint64_t seed) {
         return std::make_unique<GraphSearch>(fixture().lattice, seed, GraphSearchOptions());
       }},
  };
}

class EveryMethod : public testing::TestWithParam<Made> {};
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, testing::ValuesIn(methods()),
                         [](const auto& instance) { return instance.param.name; });

std::vector<std::uint32_t> run(SearchMethod& method, std::size_t count) {
  std::vector<std::uint32_t> found;
  for (std::uint64_t number = 1; number <= count; ++number) {
    const auto op = method.ask(number);
    if (!op) break;
    found.push_back(*op);
    fixture().tell(method, *op);
  }
  return found;
}

TEST_P(EveryMethod, ProposesEachOperatorOnce) {
  const auto method = GetParam().make(1);
  const std::vector<std::uint32_t> found = run(*method, 2 * fixture().operators.size());
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), fixture().operators.size());
  EXPECT_EQ(found.size(), fixture().operators.size());
  EXPECT_EQ(method->left(), 0U);
  EXPECT_FALSE(method->propose(1000).has_value());
}

TEST_P(EveryMethod, ProposingChangesNothing) {
  const auto method = GetParam().make(1);
  const auto other = GetParam().make(1);
  for (std::uint64_t number = 1; number <= 40; ++number) {
    for (std::uint64_t tried = 0; tried < 5; ++tried) method->propose(number + tried);
    const auto op = method->ask(number);
    ASSERT_EQ(op, other->ask(number));
    fixture().tell(*method, *op);
    fixture().tell(*other, *op);
  }
}

TEST_P(EveryMethod, GivesTheSameProposalsForStoredCalls) {
  const auto first = GetParam().make(3);
  const std::vector<std::uint32_t> found = run(*first, 60);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{13}, std::size_t{47}}) {
    const auto resumed = GetParam().make(3);
    for (std::size_t i = 0; i < cut; ++i) {
      resumed->insert(i + 1, found[i]);
      fixture().tell(*resumed, found[i]);
    }
    for (std::size_t i = cut; i < found.size(); ++i) {
      ASSERT_EQ(resumed->ask(i + 1), found[i]) << "after " << cut;
      fixture().tell(*resumed, found[i]);
    }
  }
}

TEST_P(EveryMethod, TakesOperatorsThatItDidNotPropose) {
  const auto method = GetParam().make(3);
  for (std::uint32_t op = 0; op < 20; ++op) {
    method->insert(op + 1, op);
    fixture().tell(*method, op);
  }
  const std::vector<std::uint32_t> found = run(*method, 1000);
  EXPECT_EQ(found.size(), fixture().operators.size() - 20);
}

TEST_P(EveryMethod, RepeatedAnswersChangeNothing) {
  const auto once = GetParam().make(3);
  const auto twice = GetParam().make(3);
  for (std::uint64_t number = 1; number <= 60; ++number) {
    const auto op = once->ask(number);
    ASSERT_EQ(op, twice->ask(number));
    fixture().tell(*once, *op);
    for (int i = 0; i < 3; ++i) fixture().tell(*twice, *op);
  }
}

TEST_P(EveryMethod, LateAnswersAndTheirOrderDoNotMatterUnlessItSaysSo) {
  if (GetParam().ordered) return;
  const auto forward = GetParam().make(3);
  const auto backward = GetParam().make(3);
  std::vector<std::uint32_t> open;
  for (std::uint64_t number = 1; number <= 64; ++number) {
    const auto op = forward->ask(number);
    ASSERT_EQ(op, backward->ask(number));
    open.push_back(*op);
    if (open.size() < 8) continue;
    for (std::size_t i = 0; i < open.size(); ++i) fixture().tell(*forward, open[i]);
    for (std::size_t i = open.size(); i-- > 0;) {
      backward->answer(open[i], 0.125);  // replaced
      fixture().tell(*backward, open[i]);
    }
    open.clear();
  }
}

TEST_P(EveryMethod, FindsGoodOperatorsSoonerThanChance) {
  std::vector<double> values;
  for (std::uint32_t op = 0; op < fixture().operators.size(); ++op)
    if (!fixture().fails(op)) values.push_back(fixture().value(op));
  std::sort(values.rbegin(), values.rend());
  const double good = values[values.size() / 50];
  double needed = 0;
  constexpr int kSeeds = 40;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto method = GetParam().make(static_cast<std::uint64_t>(seed));
    const std::vector<std::uint32_t> found = run(*method, 1000);
    for (const std::uint32_t op : found) {
      ++needed;
      if (!fixture().fails(op) && fixture().value(op) >= good) break;
    }
  }
  const double best = static_cast<double>(values.size() / 50 + 1);
  const double chance = static_cast<double>(fixture().operators.size() + 1) / (best + 1);
  EXPECT_LT(needed / kSeeds, 0.7 * chance) << "chance: " << chance;
}

TEST_P(EveryMethod, RefusesResultsOfUnknownOperators) {
  const auto method = GetParam().make(3);
  const auto count = static_cast<std::uint32_t>(method->operator_count());
  EXPECT_THROW(method->insert(1, count), UserError);
  EXPECT_THROW(method->answer(count, 1), UserError);
  EXPECT_THROW(method->answer(0, 1), UserError);
  EXPECT_THROW(method->fail(0), UserError);
  method->insert(1, 0);
  EXPECT_THROW(method->insert(2, 0), UserError);
  EXPECT_THROW(method->answer(0, std::numeric_limits<double>::quiet_NaN()), UserError);
}

TEST_P(EveryMethod, ServesManyThreads) {
  const auto method = GetParam().make(3);
  const std::size_t count = fixture().operators.size();
  std::vector<std::vector<std::uint32_t>> found(16);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t number = t; number < 2 * count; number += found.size()) {
        const auto op = method->ask(number);
        if (!op) break;
        found[t].push_back(*op);
        fixture().tell(*method, *op);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::uint32_t> all;
  for (const auto& each : found) all.insert(each.begin(), each.end());
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), count);
}

TEST(Methods, TheProposalsInGitAreWhatIsProposed) {
  std::string text =
      "# Written by syno_search_tests (Methods.TheProposalsInGitAreWhatIsProposed) with "
      "SYNO_UPDATE_GOLDEN=1.\n"
      "# The first operators that each method proposes for a seed and fake results, by the start "
      "of "
      "their structures.\n";
  for (const Made& made : methods()) {
    for (const std::uint64_t seed : {0U, 1U}) {
      text += "\n" + made.name + ", seed " + std::to_string(seed) + "\n";
      const auto method = made.make(seed);
      for (const std::uint32_t op : run(*method, 24))
        text += fixture().found[op].structure().hex().substr(0, 8) + "\n";
    }
  }
  expect_golden("tests/golden/search/proposals.txt", text,
                "proposals have changed; if they are meant to, run\n"
                "  SYNO_UPDATE_GOLDEN=1 build/release/syno_search_tests "
                "--gtest_filter='Methods.*'\nand read the difference");
}

}  // namespace
}  // namespace syno
