// Guided random walks: they sample operators of spaces that are too large to enumerate, and estimate the size of a space.
//
//   level 0        root                       a population: many particles at once, all on one level
//   level 1     a    b     c                  all live steps of the graphs of the particles are considered
//   level 2    . d . . e . . f                of the graphs below, at most one for each particle is kept,
//   ...                                       at random, with more weight on the promising ones
//
// A graph is kept with a probability in proportion to an estimate of the number of operators below it, learned from the
// populations before (after Knuth, "Estimating the Efficiency of Backtrack Programs", 1975, Chen, "Heuristic Sampling",
// 1992, and Rubinstein, "Stochastic Enumeration Method for Counting NP-hard Problems", 2013). It is weighted by the inverse
// of this probability, and by one over the number of its parents. So the expected count of a population is the number of
// structures, whatever the estimates are. A level with no more graphs than particles is enumerated.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/space/bound.h"
#include "syno/space/enumerate.h"

namespace syno {

struct WalkOptions {
  /// The largest number of primitives in an operator; 0 takes the max_depth of the specification.
  std::int64_t max_depth = 0;
  /// The total number of particles; the last population is completed.
  std::int64_t walks = 10'000;
  /// The number of particles in a population.
  std::int64_t width = 64;
  /// 0 for no limit. If it ends the walks, the result depends on the machine. It is checked after each round of populations.
  double max_seconds = 0;
  std::uint64_t seed = 0;
  /// The walks end after this number of distinct operators; 0 for no limit.
  std::int64_t max_operators = 0;
  /// 0 for the number of cores of the machine; at most kMaxThreads (support/threads.h). The result does not depend on it.
  std::int64_t threads = 1;
  RuleSet rules;
  BoundMode bound = BoundMode::kFull;
};

/// The budgets of walks: count, width, max_operators, seconds.
std::span<const Option<WalkOptions>> walk_options();

/// An operator that random walks found.
struct WalkedOperator {
  Operator op;
  /// The semantic key under the specification's bindings.
  Hash128 key;
  int depth = 0;
  /// An estimate of the number of structures that this operator represents: the sum of the weights of all operators with
  /// some property estimates the number of structures with this property.
  double weight = 0;
  /// The number of populations that found it.
  std::int64_t met = 0;
};

struct Walks {
  /// One operator for each semantic key, in the order in which they were found.
  std::vector<WalkedOperator> operators;
  std::int64_t walks = 0;
  std::int64_t populations = 0;
  /// The number of operators found, where an operator counts once for each population.
  std::int64_t accepted = 0;
  /// The numbers of operators that exactly one and exactly two populations found.
  std::int64_t singletons = 0;
  std::int64_t doubletons = 0;
  /// An unbiased estimate of the number of structures (accepted graphs with a matching, as Space counts them) up to the
  /// requested depth, and its standard error. The error is 0 before the second round of populations and too small before the
  /// rare parts of a space are found.
  double structures = 0;
  double structures_error = 0;

  /// The fraction of the operators of the walks that is found: 1 - singletons / accepted (Good and Turing, in Good, "The
  /// Population Frequencies of Species", 1953). It is the coverage of the distribution of the walks; 0 for a single
  /// population.
  double coverage() const;
  /// A lower bound on the number of operators that walks can reach: found + (populations - 1) / populations * singletons
  /// (singletons - 1) / (2 (doubletons + 1)) (Chao, "Estimating the Population Size for Capture-Recapture Data with
  /// Unequal Catchability", 1987).
  double at_least() const;
};

/// Called after every round of populations; it ends the walks by returning false.
using WalkProgress = std::function<bool(const Walks&)>;

/// Deterministic unless the time limit ends it: equal arguments give equal operators, for any number of threads. Throws
/// UserError as enumerate_space does.
Walks random_walks(const Specification& spec, const WalkOptions& options,
                   const WalkProgress& progress = {});

}  // namespace syno
