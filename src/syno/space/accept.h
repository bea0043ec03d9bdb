// The check of a complete operator against a specification: all reasons for which the specification rejects it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/rules/catalogue.h"
#include "syno/spec/specification.h"

namespace syno {

struct RejectionReason {
  /// A stable name, as in the counts of a search.
  std::string reason;
  /// A description in words.
  std::string text;
};

/// MACs over all layers, weighted by multiplicity. Throws UserError if the operator is not legal under some binding.
std::int64_t total_macs(const Operator& op, const Specification& spec);
std::int64_t total_params(const Operator& op, const Specification& spec);

/// All rejection reasons of `op` (any table of variables): other shapes, steps beyond limits and budgets, restrictions of
/// `rules`, quality conditions, ranges of MACs and parameters. Empty if the specification admits it.
std::vector<RejectionReason> rejections(const Operator& op, const Specification& spec,
                                        const RuleSet& rules);

/// The part of these reasons that still applies to a graph that was built by children.
std::vector<RejectionReason> quality_and_cost_rejections(const Operator& op,
                                                         const Specification& spec);

/// The ranges of MACs and parameters alone.
std::vector<RejectionReason> cost_rejections(const Operator& op, const Specification& spec);

/// Checks many operators of one specification. It agrees with quality_and_cost_rejections up to the first reason and is
/// some hundred times faster. It caches results for parts of operators, so each thread needs its own. The result does not
/// depend on earlier calls.
class OperatorChecker {
 public:
  /// Keeps a reference.
  explicit OperatorChecker(const Specification& spec);
  ~OperatorChecker();
  OperatorChecker(OperatorChecker&&) noexcept;

  /// Empty if the operator is accepted; otherwise the first reason of quality_and_cost_rejections, in
  /// the order no_weight, wasted_expand, wasted_unfold, absorbed_weight, wasted_reduce, fit, max_pooling, min_params,
  /// max_params, min_macs, max_macs, input_unread, output_constant, equal_outputs, reads_future. Undecided questions
  /// are reasons. Throws UserError on overflow.
  std::string_view rejection_reason(const Operator& op);
  /// The same if the bindings that the operator fits by the ledger are known: to replay it takes longer than the check.
  std::string_view rejection_reason(const Operator& op, FitMask fit);
  /// The operator that consists of `graph` and `match`; sizes are in the table of the specification. It need not be in
  /// canonical form.
  std::string_view rejection_reason(const Graph& graph, const std::vector<CoordinateId>& match,
                                    FitMask fit);

  /// total_macs and total_params of the last operator that was checked, if it was accepted.
  std::int64_t macs();
  std::int64_t params();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace syno
