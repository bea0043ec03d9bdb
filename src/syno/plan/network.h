// An operator under one binding, as the planner reads it: a network of tensors that is executed from the input to the
// output, each step of the graph once and backwards.
//
//   input x, read at the matched coordinates       weights, each read at its own coordinates
//        |  a view turns the coordinates it produced into those it consumed, in every tensor that has them
//        |  a contraction multiplies a weight into the data; a Reduce is summed once no waiting weight depends on it
//   output, read at the iterators
//
// "Executed" steps are bits of a StepSet. Which coordinates the data has depends on that set alone, not on the order:
// this is what lets order.h search over sets.
#pragma once

#include <bit>
#include <bitset>
#include <cstdint>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

inline constexpr std::size_t kMaxPlanSteps = 64;
inline constexpr std::size_t kMaxPlanCoordinates = 192;

using StepSet = std::uint64_t;
using CoordinateSet = std::bitset<kMaxPlanCoordinates>;

constexpr StepSet step_bit(std::size_t step) {
  return StepSet{1} << step;
}

/// Calls visit(id) for every coordinate of `dims`, ascending.
template <class Visit>
void for_each_coordinate(const CoordinateSet& dims, const Visit& visit) {
  static const CoordinateSet kLow(~0ULL);
  for (std::size_t from = 0; from < kMaxPlanCoordinates; from += 64) {
    for (std::uint64_t word = ((dims >> from) & kLow).to_ullong(); word != 0; word &= word - 1)
      visit(from + static_cast<std::size_t>(std::countr_zero(word)));
  }
}

class Network {
 public:
  /// `op` must outlive the network. Throws UserError when a size is not a positive integer under `values`, a primitive
  /// does not fit its extents, or the operator has more steps or coordinates than a plan can hold.
  Network(const Operator& op, const Values& values);

  const Operator& op() const { return op_; }
  const Graph& graph() const { return op_.graph(); }
  const Step& step(std::size_t index) const { return graph().steps()[index]; }
  std::size_t step_count() const { return graph().steps().size(); }

  std::int64_t extent(CoordinateId id) const { return extents_[static_cast<std::size_t>(id)]; }
  /// The value of step.size: the block, the factor, the extent.
  std::int64_t step_size(std::size_t step) const { return step_sizes_[step]; }
  /// A dimension that only passes from an input to an output dimension: it takes any size when the operator runs.
  bool is_free(CoordinateId id) const { return free_[static_cast<std::size_t>(id)]; }
  /// The product of the extents; saturates at the largest 64-bit integer.
  std::int64_t elements(const CoordinateSet& dims) const;

  /// Steps with nothing to execute: an Expand only says that the data does not depend on a coordinate.
  StepSet nothing_to_do() const { return expands_; }
  StepSet all_steps() const;
  CoordinateSet input_dims() const;

  /// The dimensions of a weight after the views in `done`.
  CoordinateSet weight_dims(std::size_t weight, StepSet done) const;
  std::size_t weight_of(std::size_t step) const { return weight_of_step_[step]; }
  bool is_contraction(std::size_t step) const;
  /// The contraction before `step` whose weight has the same dimensions, or -1: the two may change places in any order
  /// of the steps, at the same costs.
  int equal_before(std::size_t step) const { return equal_before_[step]; }
  /// How many contractions have the most common dimensions of a weight.
  std::size_t most_equal() const { return most_equal_; }
  bool is_reduce(std::size_t step) const;
  /// The coordinates of some Reduces, and those of the Reduces whose coordinates are in `dims`.
  CoordinateSet summed_dims(StepSet reduces) const;
  StepSet reduces_in(StepSet reduces, const CoordinateSet& dims) const;

  /// Whether all later steps that use what the view `step` produced are done.
  bool view_ready(std::size_t step, StepSet done) const;
  /// The Reduces that may be summed: on the cut, and in no weight that waits. `weight`, when given, no longer waits.
  StepSet ready_reduces(StepSet done) const;
  /// Whether no tensor depends on the result of the Unfold `step`, so that its mask needs the data to be repeated.
  bool unfold_is_bare(std::size_t step, StepSet done, const CoordinateSet& data) const;

  /// Coordinates that a view not in `done` consumes, but for the index of a window: no weight that has one is ready.
  CoordinateSet closed(StepSet done) const;
  /// What a view makes of the dimensions of a tensor.
  CoordinateSet through_view(std::size_t step, const CoordinateSet& dims) const;
  /// Whether no view is left that consumes what the Reduce `step` produced.
  bool is_open(std::size_t step, StepSet done) const;
  /// The data's dimensions after the view `step`.
  CoordinateSet after_view(std::size_t step, StepSet done, const CoordinateSet& data) const;

 private:
  bool consumed_later(CoordinateId id, StepSet done) const;

  const Operator& op_;
  std::vector<std::int64_t> extents_;
  std::vector<std::int64_t> step_sizes_;
  std::vector<bool> free_;
  /// The view that consumes a coordinate, or -1.
  std::vector<int> consumer_;
  std::vector<std::size_t> weight_of_step_;
  std::vector<int> equal_before_;
  std::size_t most_equal_ = 0;
  StepSet expands_ = 0;
};

}  // namespace syno
