// An empirical check of a rule: random partial graphs of a specification are grown, and each step that the rule
// rejects is compared with the graph that the rule keeps instead, by semantic keys and by random values in the interpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/spec/specification.h"

namespace syno {

struct RuleCheckOptions {
  /// The number of rejections to compare, each of another graph.
  std::int64_t trials = 100;
  /// The largest number of random graphs.
  std::int64_t max_graphs = 2'000;
  std::uint64_t seed = 0;
  /// The number of output elements that are computed for each operator.
  std::int64_t elements = 200;
};

/// What the rule rejects and what it keeps, as texts of graphs. A restriction keeps nothing.
struct RuleExample {
  std::string rejected;
  std::string kept;
  /// The fraction of the computed output elements that differ.
  double share = 0;
};

struct RuleCheck {
  std::int64_t graphs = 0;
  /// The steps for which the rule was evaluated, and those of them that it rejects. Rejections on distinct graphs are
  /// compared, up to the requested number.
  std::int64_t asked = 0;
  std::int64_t rejected = 0;
  std::int64_t compared = 0;
  /// Of the compared pairs: equal by their keys, equal for the random values, different for them, and too large to compute
  /// or possibly equal up to a renumbering of weights that no key recognizes.
  std::int64_t equal_keys = 0;
  std::int64_t equal_values = 0;
  std::int64_t different = 0;
  std::int64_t undecided = 0;
  /// Of the computed pairs: the average and the largest fraction of elements that differ.
  double mean_share = 0;
  double most_share = 0;
  /// The rejection with the largest fraction; for a restriction the first one.
  std::optional<RuleExample> example;
};

/// Called regularly with what was found; it ends the check by returning false.
using RuleCheckProgress = std::function<bool(const RuleCheck&)>;

/// Checks one rule of `rules`, given by id or name. Restrictions that are on count in the guard. Throws UserError for
/// an unknown rule and for a specification without bindings.
RuleCheck check_rule(const Specification& spec, const RuleSet& rules, std::string_view rule,
                     const RuleCheckOptions& options = {}, const RuleCheckProgress& progress = {});

}  // namespace syno
