// Ledger: what a partial graph has used up of a specification, and whether one more step is allowed. All of it is a
// function of the graph's content, not of the path to it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "syno/graph/graph.h"
#include "syno/spec/specification.h"

namespace syno {

/// The name of what rejects a step or an operator; empty when nothing does. Names are stable: searches count by them.
using Reason = std::string_view;

namespace reason {
inline constexpr Reason kNone = "";
inline constexpr Reason kDepth = "max_depth";
inline constexpr Reason kChain = "max_chain_length";
inline constexpr Reason kWeights = "max_weights";
inline constexpr Reason kCap = "primitive_cap";
inline constexpr Reason kPassedThrough = "passed_through";
inline constexpr Reason kIllegalSize = "illegal_size";
inline constexpr Reason kFit = "fit";
inline constexpr Reason kBudget = "budget";
inline constexpr Reason kShiftAmount = "shift_amount";
inline constexpr Reason kRepeat = "max_repeat";
inline constexpr Reason kEvenWindow = "even_windows";
inline constexpr Reason kUnfoldRatio = "min_unfold_ratio";
inline constexpr Reason kWindow = "max_window";
inline constexpr Reason kCausal = "causal";
inline constexpr Reason kReductionRatio = "max_reduction_ratio";
inline constexpr Reason kElementWise = "element_wise_weights";
inline constexpr Reason kWeightParams = "min_weight_params";
inline constexpr Reason kDropped = "max_dropped";
inline constexpr Reason kJoined = "max_joined";
}  // namespace reason

/// Budget used, per variable.
using Charges = std::array<std::int16_t, kMaxVariables>;

struct Ledger {
  Charges charges{};
  FitMask fit = 0;
  std::array<std::int16_t, kPrimitiveCount> counts{};
  std::int16_t depth = 0;
  /// The product of all reductions so far.
  Size reductions;
  /// The product of all stand-alone Expands so far.
  Size repeats;

  friend bool operator==(const Ledger&, const Ledger&) = default;
};

/// The elements of the input without passed-through dimensions.
Size input_elements(const Specification& spec);

/// The ledger of the empty graph.
Ledger start_ledger(const Specification& spec);

/// What the step charges against the budgets (semantics: Reduce and Stride charge their size; a Contraction the primary
/// powers of each coordinate that it takes; Merge of block b and group a charges (|a| + |b| - |a*b|) / 2; others nothing).
Charges step_charges(const Specification& spec, const Graph& graph, const Step& step);

/// Whether `spec` allows `step` on top of `graph`; when it does, `ledger` moves on. `graph` does not hold the step yet.
Reason admit(const Specification& spec, const Graph& graph, const Step& step, Ledger& ledger);

/// In words: what of `step` is rejected for `reason`, what was expected and what was found.
std::string describe_rejection(const Specification& spec, const Graph& graph, const Step& step,
                               Reason reason);

/// The ledger of a whole graph; throws UserError with describe_rejection's text and the step's number when a step is rejected.
Ledger replay(const Specification& spec, const Graph& graph);

}  // namespace syno
