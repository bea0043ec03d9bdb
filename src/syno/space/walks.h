// Guided random walks: operators of spaces that are too large to list, and an estimate of how large they are.
//
//   level 0        root                       a flock: many walkers at once, all on one level
//   level 1     a    b     c                  every live step of every graph they stand on is looked at
//   level 2    . d . . e . . f                as many of the graphs below are kept as there are walkers,
//   ...                                       by chance, the promising ones more often
//
// A graph is kept in proportion to an estimate of how much lies below it, learned from the flocks before (after Knuth,
// "Estimating the Efficiency of Backtrack Programs", 1975, Chen, "Heuristic Sampling", 1992, and Rubinstein, "Stochastic
// Enumeration Method for Counting NP-hard Problems", 2013). It counts as much as its chance was small. Several steps may
// lead to one graph, so each counts for one over the number of all graphs before it. With that the mean of what flocks
// count is the number of structures, whatever the estimates were. A level with no more graphs than walkers is listed.
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
  /// Primitives in an operator; 0 takes the specification's max_depth.
  std::int64_t max_depth = 0;
  /// Walkers in all; the last flock is made full.
  std::int64_t walks = 10'000;
  /// Walkers in a flock.
  std::int64_t width = 64;
  /// 0 for no limit. Where it ends the walks, the result depends on the machine; looked at after each round of flocks.
  double max_seconds = 0;
  std::uint64_t seed = 0;
  /// Ends after so many distinct operators; 0 for no limit.
  std::int64_t max_operators = 0;
  /// 0 for as many as the machine has cores; at most kMaxThreads (support/threads.h). The result does not depend on it.
  std::int64_t threads = 1;
  RuleSet rules;
  BoundMode bound = BoundMode::kFull;
};

/// The budgets of walks: count, width, max_operators, seconds.
std::span<const Option<WalkOptions>> walk_options();

/// An operator that walks met.
struct WalkedOperator {
  Operator op;
  /// The semantic key under the specification's bindings.
  Hash128 key;
  int depth = 0;
  /// An estimate of the number of structures that this operator stands for, so that a sum of weights over operators with
  /// some property estimates how many structures have it.
  double weight = 0;
  /// How many flocks met it.
  std::int64_t met = 0;
};

struct Walks {
  /// One operator a semantic key, in the order of finding.
  std::vector<WalkedOperator> operators;
  std::int64_t walks = 0;
  std::int64_t flocks = 0;
  /// How often a flock met an operator; one flock meets an operator once.
  std::int64_t accepted = 0;
  /// Operators that one flock met, and that two flocks met.
  std::int64_t singletons = 0;
  std::int64_t doubletons = 0;
  /// An estimate without bias of the number of structures (accepted graphs with a matching, as Space counts them) up to the
  /// depth asked for, and its standard error, which is 0 before there are two rounds of flocks and too small before the
  /// rare parts of a space were met.
  double structures = 0;
  double structures_error = 0;

  /// The share of what such flocks find that has been found: 1 - singletons / accepted (Good and Turing, in Good, "The
  /// Population Frequencies of Species", 1953). It is the coverage of the walks' own distribution; 0 while there is one
  /// flock.
  double coverage() const;
  /// A lower bound for the number of operators that walks can reach: found + (flocks - 1) / flocks * singletons
  /// (singletons - 1) / (2 (doubletons + 1)) (Chao, "Estimating the Population Size for Capture-Recapture Data with
  /// Unequal Catchability", 1987).
  double at_least() const;
};

/// Called after every round of flocks; returning false ends them.
using WalkProgress = std::function<bool(const Walks&)>;

/// Deterministic unless time ends it: the same arguments give the same operators, for any number of threads. Throws
/// UserError as list_space does.
Walks random_walks(const Specification& spec, const WalkOptions& options,
                   const WalkProgress& progress = {});

}  // namespace syno
