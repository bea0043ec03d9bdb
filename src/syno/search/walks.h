// Guided random walks: operators of spaces that are too large to list. A walk goes from the root from live move to live
// move, so it rarely ends without an operator; its choices are weighted by what earlier walks met.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/search/bound.h"
#include "syno/search/enumerate.h"

namespace syno {

struct WalkOptions {
  /// Primitives in an operator; 0 takes the specification's max_depth.
  std::int64_t max_depth = 0;
  std::int64_t walks = 1000;
  std::uint64_t seed = 0;
  /// Ends after so many distinct operators; 0 for no limit.
  std::int64_t max_operators = 0;
  RuleSet rules;
  BoundMode bound = BoundMode::kFull;
};

struct Walks {
  /// One operator a semantic key, in the order of finding.
  std::vector<FoundOperator> operators;
  std::int64_t walks = 0;
  /// Walks that ended at a complete graph, and those of them that passed all conditions.
  std::int64_t completed = 0;
  std::int64_t accepted = 0;
  /// Accepted walks whose operator had been met before.
  std::int64_t repeated = 0;
  /// Operators that were met once.
  std::int64_t singletons = 0;

  /// The share of what such walks find that has been found: 1 - singletons / accepted (Good and Turing, in Good, "The
  /// Population Frequencies of Species", 1953). It is the coverage of the walks' own distribution, which is not uniform.
  double coverage() const;
  /// A lower bound for the number of operators that walks can reach: found + singletons (singletons - 1) / (2 (doubletons
  /// + 1)) (Chao, "Nonparametric Estimation of the Number of Classes", 1984, with the bias correction of 1987).
  double at_least() const;

  std::int64_t doubletons = 0;
};

/// Called after every hundred walks; returning false ends them.
using WalkProgress = std::function<bool(const Walks&)>;

/// Deterministic: the same arguments give the same operators. Throws UserError as list_space does.
Walks random_walks(const Specification& spec, const WalkOptions& options,
                   const WalkProgress& progress = {});

}  // namespace syno
