// Coverage, equal outputs and causality against brute force: every term of thousands of random operators, listed.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "syno/interp/causality.h"
#include "syno/interp/random_graph.h"
#include "syno/quality/coverage.h"

namespace syno {
namespace {

struct Truth {
  bool whole_input = true;
  std::vector<bool> read;
  /// The largest number of outputs with the same terms, those without terms apart.
  std::int64_t largest_class = 0;
  /// By (output dimension, input dimension).
  std::map<std::pair<int, int>, bool> reads_future;
};

Truth brute_force(const Operator& op, const Values& values) {
  const Program program(make_access_map(op), values);
  Truth truth;
  std::int64_t inputs = 1;
  for (const CoordinateId id : program.data) inputs *= program.extent(id);
  truth.read.assign(static_cast<std::size_t>(inputs), false);
  std::map<std::vector<std::vector<std::int64_t>>, std::int64_t> classes;
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  InterruptPoll poll;
  do {
    std::vector<std::vector<std::int64_t>> terms;
    for_each_term(program, slots, poll, [&] {
      std::vector<std::int64_t> term{flat_index(program.data, program.extents, slots)};
      truth.read[static_cast<std::size_t>(term[0])] = true;
      for (const auto& dims : program.weights)
        term.push_back(flat_index(dims, program.extents, slots));
      terms.push_back(std::move(term));
      for (std::size_t o = 0; o < program.iterators.size(); ++o) {
        for (std::size_t i = 0; i < program.data.size(); ++i) {
          bool& future = truth.reads_future[{static_cast<int>(o), static_cast<int>(i)}];
          future = future || slots[static_cast<std::size_t>(program.data[i])] >
                                 slots[static_cast<std::size_t>(program.iterators[o])];
        }
      }
    });
    if (terms.empty()) continue;
    std::sort(terms.begin(), terms.end());
    truth.largest_class = std::max(truth.largest_class, ++classes[std::move(terms)]);
  } while (next_index(program.iterators, program.extents, slots));
  truth.whole_input = std::all_of(truth.read.begin(), truth.read.end(), [](bool b) { return b; });
  return truth;
}

struct Seen {
  int unread = 0;
  int repeated = 0;
  int constant = 0;
  int future = 0;
  int past = 0;
};

void check(const RandomOperator& sampled, std::uint64_t seed, Seen& seen) {
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + sampled.op.text() + sampled.binding.text());
  const Truth truth = brute_force(sampled.op, sampled.values);

  const InputCoverage coverage = input_coverage(sampled.op, sampled.values);
  ASSERT_EQ(coverage.whole, truth.whole_input ? Decision::kYes : Decision::kNo);
  if (coverage.whole == Decision::kNo) {
    ++seen.unread;
    ASSERT_EQ(coverage.unread.size(), sampled.op.match().size());
    std::size_t flat = 0;
    for (std::size_t d = 0; d < coverage.unread.size(); ++d) {
      const auto extent = *sampled.op.input()[d].size.evaluate(sampled.values);
      flat = flat * static_cast<std::size_t>(extent) +
             static_cast<std::size_t>(std::max<std::int64_t>(coverage.unread[d], 0));
    }
    EXPECT_FALSE(truth.read[flat]);
  }

  const OutputClasses classes = output_classes(sampled.op, sampled.values);
  ASSERT_TRUE(classes.decided);
  ASSERT_EQ(classes.largest, truth.largest_class);
  seen.repeated += classes.largest > 1;
  seen.constant += classes.largest == 0;
  if (classes.largest == 0) return;

  for (const auto& [pair, future] : truth.reads_future) {
    const FutureReads found = future_reads(sampled.op, sampled.values, pair.first, pair.second);
    ASSERT_EQ(found.found, future ? Decision::kYes : Decision::kNo) << pair.first << pair.second;
    if (future) {
      EXPECT_GT(found.input_position, found.output_position);
    }
    ++(future ? seen.future : seen.past);
  }
}

TEST(QualityOracle, RandomOperatorsAreCheckedAsByBruteForce) {
  RandomOptions options;
  options.max_terms = 1500;
  options.causal_windows = 0.3;
  Seen seen;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    check(random_operator(seed, options), seed, seen);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(seen.repeated, 200);
  EXPECT_GT(seen.future, 500);
  EXPECT_GT(seen.past, 500);
}

TEST(QualityOracle, StridedOperatorsAreCheckedAsByBruteForce) {
  RandomOptions options;
  options.max_terms = 1500;
  options.max_reductions = 3;
  options.mix.stride = 2;
  options.mix.unfold = 3;
  options.mix.reduce = 2.5;
  options.mix.contract = 1;
  options.wide_windows = 0.6;
  Seen seen;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    check(random_operator(seed, options), seed, seen);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(seen.unread, 300);
  EXPECT_GT(seen.constant, 5);
}

// Without weights nothing tells the terms of a window apart but what they read.
TEST(QualityOracle, WindowsAloneAreCheckedAsByBruteForce) {
  RandomOptions options;
  options.max_terms = 1500;
  options.max_weights = 0;
  options.mix.unfold = 3;
  options.mix.expand = 1;
  options.wide_windows = 0.7;
  options.causal_windows = 0.3;
  Seen seen;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    check(random_operator(seed, options), seed, seen);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(seen.repeated, 200);
}

}  // namespace
}  // namespace syno
