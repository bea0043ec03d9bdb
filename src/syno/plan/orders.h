// The k cheapest orders of an operator: the dynamic program of order.h with several histories a set.
//
// Two histories are equal when they compute the same: the same contractions, sums and products, in the same order, on data
// of the same dimensions. So that this can be compared move by move, views that only re-index are executed as soon as
// they are ready (macs_counter.h proves that it costs no MACs); what is left to choose are the order of contractions
// and sums, and where windows, cyclic shifts and repeats stand between them.
//
// With `fold_weights` there are two more kinds of moves, both free when the operator runs:
//
//   fold       several ready weights are multiplied with each other, and their product into the data
//   presum     a ready Reduce that only this weight, or this product, depends on is summed beforehand
//
// Folding later than right before its contraction or earlier makes no difference to the costs, so both are parts of
// the move `contract`.
#pragma once

#include <vector>

#include "syno/plan/order.h"

namespace syno {

struct OrdersOptions {
  std::size_t limit = 1;
  bool fold_weights = false;
};

/// What comparing orders has cost, over several calls for one operator. A unit is the comparison of two histories.
struct OrdersWork {
  /// From here on fewer histories are followed: some seconds.
  static constexpr std::size_t kMuch = 400'000'000;
  static constexpr std::size_t kMost = 4 * kMuch;
  std::size_t units = 0;
};

/// The cheapest orders, cheapest first; no two equal. Among equal costs one with fewer foldings comes first. Fewer than
/// `limit` when there are no more, or the others need more than 2^63-1 MACs. Of five or more weights with the same
/// dimensions, orders in which two of them change places are one. Throws UserError when that would take
/// much longer than ten seconds.
std::vector<Order> cheapest_orders(const Network& network, const OrdersOptions& options,
                                   OrdersWork& work);

/// The moves from a state that an order may take: one view that only re-indexes, or else everything that order.h has, and
/// with `fold_weights` foldings.
std::vector<PricedMove> choices_from(const Network& network, StepSet done,
                                     const CoordinateSet& data, bool fold_weights);

/// What tells histories apart: a hash of what the moves of `order` compute.
std::uint64_t computation(const Network& network, const Order& order);

}  // namespace syno
