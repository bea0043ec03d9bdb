// What a specification says of a complete operator: every reason for which it refuses it.
#pragma once

#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/rules/catalogue.h"
#include "syno/spec/specification.h"

namespace syno {

struct RefusalReason {
  /// A stable name, as counted in statistics.
  std::string reason;
  /// In words.
  std::string text;
};

/// Multiply-adds over all layers by multiplicity. Throws UserError when the operator is not legal under some binding.
std::int64_t total_macs(const Operator& op, const Specification& spec);
std::int64_t total_params(const Operator& op, const Specification& spec);

/// Everything against `op` (any table of variables): other shapes, steps beyond limits and budgets, restrictions of
/// `rules`, quality, windows of multiply-adds and parameters. Empty: the specification admits it.
std::vector<RefusalReason> refusals(const Operator& op, const Specification& spec,
                                    const RuleSet& rules);

/// The part of it that a graph which was built by children still has to pass.
std::vector<RefusalReason> quality_and_cost_refusals(const Operator& op, const Specification& spec);

}  // namespace syno
