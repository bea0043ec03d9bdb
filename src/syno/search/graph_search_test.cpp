#include "syno/search/graph_search.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>

#include "syno/search/operators_test.h"
#include "syno/search/tree_search.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

using namespace samples;

class GraphSearchTest : public testing::Test {
 protected:
  std::vector<LabeledSteps> operators = labeled(small_operators());
  std::shared_ptr<const Lattice> lattice = std::make_shared<const Lattice>(operators);

  // Visits, unobserved visits, mean and best of all nodes, counted again from the results.
  struct Result {
    TrialState state = TrialState::kNew;
    double value = 0;
  };
  void expect_counts(const GraphSearch& search, const std::vector<Result>& results) const {
    for (std::uint32_t node = 0; node < lattice->node_count(); ++node) {
      int visits = 0;
      int open = 0;
      int done = 0;
      double sum = 0;
      double best = -1e9;
      for (const std::uint32_t op : lattice->below(node)) {
        visits += int{results[op].state != TrialState::kNew};
        open += int{results[op].state == TrialState::kPending};
        if (results[op].state != TrialState::kDone) continue;
        ++done;
        sum += results[op].value;
        best = std::max(best, results[op].value);
      }
      ASSERT_EQ(search.visits(node), visits);
      ASSERT_EQ(search.unobserved(node), open);
      ASSERT_NEAR(search.mean(node), done == 0 ? 0 : sum / done, 1e-8);
      ASSERT_NEAR(search.best(node), done == 0 ? 0 : best, 1e-8);
    }
  }
};

TEST_F(GraphSearchTest, StatisticsAreThoseOfTheResultsBelowEachNode) {
  GraphSearch search(lattice, 5, {});
  std::vector<Result> results(operators.size());
  CounterRandom random(11, 0);
  std::vector<std::uint32_t> open;
  std::vector<std::uint32_t> done;
  for (std::uint64_t number = 1; number <= 80; ++number) {
    const auto op = search.ask(number);
    ASSERT_TRUE(op.has_value());
    results[*op].state = TrialState::kPending;
    open.push_back(*op);
    while (open.size() > 5) {
      const auto place = static_cast<std::ptrdiff_t>(random.below(open.size()));
      const std::uint32_t told = open[static_cast<std::size_t>(place)];
      open.erase(open.begin() + place);
      if (random.below(6) == 0) {
        search.fail(told);
        results[told] = {TrialState::kFailed, 0};
        continue;
      }
      results[told] = {TrialState::kDone, random.uniform() * 4 - 2};
      search.answer(told, results[told].value);
      done.push_back(told);
    }
    // A value that falls or rises, as at a higher rung, replaces the old one.
    if (number % 7 == 0 && !done.empty()) {
      const std::uint32_t again = done[random.below(done.size())];
      results[again].value = random.uniform();
      search.answer(again, results[again].value);
    }
    expect_counts(search, results);
  }
}

TEST_F(GraphSearchTest, BackUpIsIdempotentAndIndependentOfTheOrder) {
  GraphSearch forward(lattice, 5, {});
  GraphSearch backward(lattice, 5, {});
  std::vector<std::uint32_t> found;
  for (std::uint64_t number = 1; number <= 40; ++number) {
    const std::uint32_t op = *forward.ask(number);
    backward.insert(number, op);
    found.push_back(op);
  }
  for (const std::uint32_t op : found) forward.answer(op, fake_value(operators[op]));
  std::reverse(found.begin(), found.end());
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const std::uint32_t op : found) backward.answer(op, fake_value(operators[op]));
  for (std::uint32_t node = 0; node < lattice->node_count(); ++node) {
    EXPECT_EQ(forward.visits(node), backward.visits(node));
    EXPECT_EQ(forward.mean(node), backward.mean(node));
    EXPECT_EQ(forward.best(node), backward.best(node));
  }
}

TEST_F(GraphSearchTest, AFailureKeepsItsVisitAndItsValueIsTheWorst) {
  GraphSearch search(lattice, 5, {});
  const std::uint32_t op = *search.ask(1);
  EXPECT_EQ(search.visits(Lattice::root()), 1);
  EXPECT_EQ(search.unobserved(Lattice::root()), 1);
  search.fail(op);
  for (const std::uint32_t node : lattice->above(op)) {
    EXPECT_EQ(search.visits(node), 1);
    EXPECT_EQ(search.unobserved(node), 0);
    EXPECT_EQ(search.mean(node), 0);
  }
  search.answer(op, 0.5);  // a repeated trial
  EXPECT_EQ(search.visits(Lattice::root()), 1);
  EXPECT_EQ(search.mean(Lattice::root()), 0.5);
}

TEST_F(GraphSearchTest, ProposesWhatThePriorPrefers) {
  GraphSearchOptions options;
  options.samples = 0;
  options.exploration = 0.01;
  options.pull = 50;
  GraphSearch search(lattice, 5, options);
  std::vector<double> prior(operators.size());
  for (std::uint32_t op = 0; op < prior.size(); ++op) prior[op] = fake_value(operators[op]);
  // The scale of priors is that of results.
  search.insert(1, 0);
  search.answer(0, 0);
  search.insert(2, 1);
  search.answer(1, 1);
  search.set_prior(prior);
  double sum = 0;
  for (std::uint64_t number = 3; number <= 12; ++number) {
    const std::uint32_t op = *search.ask(number);
    sum += prior[op];
    search.answer(op, prior[op]);
  }
  double all = 0;
  for (const double each : prior) all += each;
  EXPECT_GT(sum / 10, all / static_cast<double>(prior.size()) + 0.02);
  EXPECT_THROW(search.set_prior({1.0}), UserError);
}

TEST_F(GraphSearchTest, TheTreeSearchLosesNoVisit) {
  TreeSearch search(lattice, std::make_shared<const std::vector<LabeledSteps>>(operators), 5, {});
  std::vector<std::uint32_t> open;
  std::int64_t told = 0;
  for (std::uint64_t number = 1; number <= 60; ++number) {
    open.push_back(*search.ask(number));
    if (open.size() > 4) {
      const std::uint32_t op = open.front();
      open.erase(open.begin());
      if (number % 5 == 0)
        search.fail(op);
      else
        search.answer(op, fake_value(operators[op]));
      ++told;
    }
    EXPECT_EQ(search.visits(), told);
    EXPECT_EQ(search.pending(), static_cast<std::int64_t>(open.size()));
  }
}

}  // namespace
}  // namespace syno
