// Whether a rule is sound, tried out: random partial graphs of a specification are grown, and each step that the rule
// refuses is compared with what the rule keeps instead, by semantic keys and by random values in the interpreter.
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
  /// Refusals to compare, each of another graph.
  std::int64_t trials = 100;
  /// Random graphs that are grown at most.
  std::int64_t max_graphs = 2'000;
  std::uint64_t seed = 0;
  /// Output elements that are computed of each operator.
  std::int64_t elements = 200;
};

/// What the rule refuses and what it keeps, as texts of graphs; nothing is kept by a restriction.
struct RuleExample {
  std::string refused;
  std::string kept;
  /// Of the output elements that were computed, the part that differs.
  double share = 0;
};

struct RuleCheck {
  std::int64_t graphs = 0;
  /// Steps that the rule was asked about, and of them those it refuses. Those that are refused on distinct graphs are
  /// compared, up to the number asked for.
  std::int64_t asked = 0;
  std::int64_t refused = 0;
  std::int64_t compared = 0;
  /// Of those compared: equal by their keys, equal for the random values, different for them, and too large to compute
  /// or maybe equal up to a renumbering of weights that no key sees.
  std::int64_t equal_keys = 0;
  std::int64_t equal_values = 0;
  std::int64_t different = 0;
  std::int64_t undecided = 0;
  /// Of the pairs that were computed: the share of elements that differ, on average and at most.
  double mean_share = 0;
  double most_share = 0;
  /// The refusal with the largest share; for a restriction the first one.
  std::optional<RuleExample> example;
};

/// Called now and then with what was found; returning false ends the check.
using RuleCheckProgress = std::function<bool(const RuleCheck&)>;

/// Checks one rule of `rules`, by id or name. Restrictions of `rules` that are on count in the guard. Throws UserError for
/// an unknown rule and for a specification without bindings.
RuleCheck check_rule(const Specification& spec, const RuleSet& rules, std::string_view rule,
                     const RuleCheckOptions& options = {}, const RuleCheckProgress& progress = {});

}  // namespace syno
