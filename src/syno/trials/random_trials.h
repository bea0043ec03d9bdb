// The paper's two experiments on synthesis by random trials: how few of the graphs that are sampled without rules a search
// with rules would keep (its Table 2), and how seldom trials reach an operator without a distance (its section 9.4).
//
// A trial starts at the root and takes one random step after the other: a primitive is sampled among those that have an
// allowed step, then one of its steps. It never goes back.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/spec/specification.h"
#include "syno/support/options.h"

namespace syno {

/// What a trial asks of a graph before it takes a step to it: may the input be reached within the steps left?
enum class TrialGuide : std::uint8_t {
  kNone,          ///< nothing
  kDistance,      ///< the paper's shape distance as section 7.1 counts (shape_distance.h)
  kDistanceOnce,  ///< the same as theorem A.2 counts
  kBound,         ///< the completion bound (bound.h)
};
/// "none", "distance", "distance-once", "bound"; throws UserError for another name.
TrialGuide parse_trial_guide(std::string_view name);

struct TrialOptions {
  std::int64_t trials = 10'000;
  /// 0 for no limit. Where it ends the trials, the result depends on the machine.
  double max_seconds = 0;
  /// Primitives in an operator; 0 takes the specification's max_depth.
  std::int64_t max_depth = 0;
  std::uint64_t seed = 0;
  /// 0 for as many as the machine has cores; at most kMaxThreads (support/threads.h). The result does not depend on it.
  std::int64_t threads = 1;
  RuleSet rules;
  TrialGuide guide = TrialGuide::kNone;
};

/// The budgets of random trials: trials, depth, max_seconds.
std::span<const Option<TrialOptions>> trial_options();

struct Trials {
  std::int64_t trials = 0;
  /// Steps taken, and steps looked at.
  std::int64_t steps = 0;
  std::int64_t looked_at = 0;
  /// Trials that met a graph whose frontier is the input, and those that met an operator which passes all conditions.
  std::int64_t complete = 0;
  std::int64_t valid = 0;
  /// Semantic keys of all such operators on the way of a trial.
  std::int64_t distinct = 0;
  double seconds = 0;
};

/// Called now and then with the trials done; returning false ends them.
using TrialProgress = std::function<bool(std::int64_t)>;

Trials random_trials(const Specification& spec, const TrialOptions& options,
                     const TrialProgress& progress = {});

struct CanonicalRow {
  /// Complete graphs of one number of primitives that were sampled without rules.
  std::int64_t samples = 0;
  /// Those that no rule rejects: some order of their steps is allowed.
  std::int64_t canonical = 0;
  /// Those that pass all conditions of quality and cost, too.
  std::int64_t listed = 0;
  /// Different structures among the samples, and different operators (semantic keys).
  std::int64_t structures = 0;
  std::int64_t operators = 0;
};

struct CanonicalRates {
  /// By the number of primitives.
  std::vector<CanonicalRow> rows;
  std::int64_t trials = 0;
  double seconds = 0;
};

/// Samples complete graphs without rules and counts those that a search with `options.rules` would keep. Each trial samples
/// how many steps it may take, from 2 to max_depth, and counts every complete graph of at least 2 steps with a weight that
/// it meets, with one of its matchings. `options.trials` is the number of samples.
CanonicalRates canonical_rates(const Specification& spec, const TrialOptions& options,
                               const TrialProgress& progress = {});

}  // namespace syno
