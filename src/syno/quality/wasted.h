// Steps of an operator that add nothing, under any binding: each has the name of a reason and a text.
#pragma once

#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/quality/compact_map.h"
#include "syno/spec/ledger.h"

namespace syno {

namespace reason {
/// An Expand of a coordinate that depends on reductions only: it multiplies by a number.
inline constexpr Reason kWastedExpand = "wasted_expand";
/// An Unfold of two sides that depend on reductions only and are in no weight: sums with fixed counts.
inline constexpr Reason kWastedUnfold = "wasted_unfold";
/// A weight whose coordinates are all in another weight: the product of the two is the other one again.
inline constexpr Reason kAbsorbedWeight = "absorbed_weight";
/// A Reduce that no data coordinate and at most one weight depends on: it only adds up a weight.
inline constexpr Reason kWastedReduce = "wasted_reduce";
}  // namespace reason

/// One thing that speaks against an operator.
struct Rejection {
  /// A stable name that searches count by.
  Reason reason;
  /// What was found, in words.
  std::string text;
  /// The question could not be settled within its cost limit; nothing is known to be wrong.
  bool undecided = false;
};

/// Where several steps are wasted for one reason, the first is named. Empty when nothing is wasted.
std::vector<Rejection> wasted_steps(const Operator& op);

/// The reason of the first of them; kNone when there is none.
Reason first_wasted_step(const Graph& graph, const CompactMap& map);

/// The product of the reductions that the indices of the weights do not tell: so many data elements are summed with one
/// and the same weight. A weight tells a Reduce when it holds it, what Splits, Shifts and Strides made of it, both
/// results of a Merge of that, or the remainder of a Merge that cuts it off again (parts_cut_again).
Size pooling_size(const Operator& op);
/// Those reductions.
CoordinateMask pooled_reductions(const CompactMap& map);

}  // namespace syno
