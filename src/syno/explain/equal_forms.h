// Other forms of an operator: what the rewrites of the rules make of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/rules/catalogue.h"
#include "syno/spec/specification.h"

namespace syno {

/// An operator that is the same as another one, and the rules that lead from that one to it; "equal keys" for a step that
/// no rule stands for.
struct EqualForm {
  Operator op;
  Hash128 key;
  std::vector<std::string> rules;
  /// Whether one of the rules is approximate: the operator is nearly the same.
  bool near = false;
};

enum class FormsOf : std::uint8_t {
  kExactRules,        ///< equal operators
  kApproximateRules,  ///< near-equal ones too, by the approximate rules of a set
};

/// Looks for a form of `op` that `wanted` accepts, nearest first, among at most `most` forms; null when none is met. A
/// rule is applied wherever its pattern stands in the operator, whether or not it would reject the step there, and the
/// operator's other steps are taken after it. Splits with their operands exchanged, left out Shifts and other matchings
/// are tried as well, for rules about complete graphs. But for approximate rules, each form has the semantic key under
/// `spec` of the form that it is made of. The exact rules are those of the catalogue and those that were added to `rules`,
/// the approximate ones those that are on.
std::optional<EqualForm> find_equal_form(const Operator& op, const Specification& spec,
                                         const RuleSet& rules, FormsOf which,
                                         const std::function<bool(const Operator&)>& wanted,
                                         int most = 60);

/// The rules of `rules` that reject some step of the operator, as "R6a view-above-share", where as much or as little as
/// possible of the operator stands before it.
std::vector<const Rule*> rules_that_reject(const Operator& op, const Specification& spec,
                                           const RuleSet& rules);

}  // namespace syno
