// The order in which a plan executes the steps of an operator, chosen by cost.
//
// A dynamic program over sets of executed steps (Selinger et al., "Access path selection", 1979, for joins). From each
// set there are four kinds of moves:
//
//   view       one ready Split, Merge, Shift, Stride or Unfold                        0 MACs
//   contract   one ready weight, and every Reduce that this makes ready               outputs * reductions
//   sum        every ready Reduce of a coordinate that the data has                   terms
//   scale      every ready Reduce of a coordinate that no tensor depends on           outputs (a product with a number)
//
// Of weights with the same dimensions, the one of the first step is multiplied first: two of them that change places leave
// an order with the same costs. Of orders with equal costs the one found first is kept, and that is always one of these.
//
// Summing less than is ready never pays: the sums cost nothing more in that stage and less data is left. So early
// reduction (rfactor, Fig. 4 of the paper) is the move `sum` between two views.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "syno/plan/network.h"

namespace syno {

/// Lexicographic: multiply-accumulates first, then elements written.
struct Cost {
  std::int64_t macs = 0;
  std::int64_t written = 0;
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

/// Adds without wrapping around: a sum that does not fit stays at the largest 64-bit integer.
Cost operator+(const Cost& a, const Cost& b);

enum class MoveKind : std::uint8_t { kView, kContraction, kSum, kScale };

struct PlanMove {
  MoveKind kind = MoveKind::kView;
  /// The view or the contraction; unused by sums and scales.
  std::size_t step = 0;
  /// The Reduce steps that are executed with it.
  StepSet reduces = 0;
  /// Contractions that are multiplied into the weight of `step` beforehand, and the Reduces that this product sums by
  /// itself; on weights alone, so both cost nothing when the operator runs (orders.h).
  StepSet folded = 0;
  StepSet offline = 0;
  /// Whether windows that a convolution would take inside of it are taken before.
  bool windows_apart = false;
};

struct Order {
  std::vector<PlanMove> moves;
  Cost cost;
  /// False when there were so many sets that only the cheapest were followed, and very few after two million moves.
  bool exact = true;
};

/// The moves from a state, each with its cost, in a fixed order. `data` are the data's dimensions.
struct PricedMove {
  PlanMove move;
  Cost cost;
  CoordinateSet data;
};
/// The steps that a move executes.
StepSet executed_by(const PlanMove& move);
/// With `equal_in_order`, weights of the same dimensions are multiplied in the order of their steps alone.
std::vector<PricedMove> moves_from(const Network& network, StepSet done, const CoordinateSet& data,
                                   bool equal_in_order = false);
/// Whether a weight of the same dimensions as that of the contraction `step` stands before it and waits.
bool waits_for_equal(const Network& network, std::size_t step, StepSet done);

/// The cheapest order; among equals the one found first, which depends on the operator's canonical form alone.
/// Throws UserError when even the cheapest order needs more than 2^63-1 MACs.
Order cheapest_order(const Network& network);

}  // namespace syno
