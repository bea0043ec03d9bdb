// What a specification says of a complete operator: every reason for which it refuses it.
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

/// Its windows of multiply-adds and parameters alone.
std::vector<RefusalReason> cost_refusals(const Operator& op, const Specification& spec);

/// Judges many operators of one specification: what quality_and_cost_refusals says, some hundred times faster, as far as
/// the first reason. It keeps what it found out about parts of operators, so a thread has its own; what it says does not
/// depend on what it was asked before.
class OperatorJudge {
 public:
  /// Keeps a reference.
  explicit OperatorJudge(const Specification& spec);
  ~OperatorJudge();
  OperatorJudge(OperatorJudge&&) noexcept;

  /// Empty when nothing speaks against the operator; otherwise the first of the reasons in quality_and_cost_refusals, in
  /// the order no_weight, wasted_expand, wasted_unfold, absorbed_weight, wasted_reduce, fit, max_pooling, min_params,
  /// max_params, min_macs, max_macs, input_unread, output_constant, equal_outputs, reads_future. Undecided questions
  /// count. Throws UserError where that overflows.
  std::string_view first_reason(const Operator& op);
  /// The same where the bindings that the ledger lets the operator fit are known: replaying it takes longer than judging.
  std::string_view first_reason(const Operator& op, FitMask fit);
  /// The operator that `match` makes of `graph`, whose sizes are in the table of the specification. It need not be in
  /// canonical form.
  std::string_view first_reason(const Graph& graph, const std::vector<CoordinateId>& match,
                                FitMask fit);

  /// total_macs and total_params of the operator that was judged last, if nothing spoke against it.
  std::int64_t macs();
  std::int64_t params();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace syno
