// Depthwise convolutions of codes of 8 bits: each channel has taps of its own, and vectors lie over channels.
//
// A word has up to four rows of one column of one channel, and one instruction multiplies it with the weights of so many
// taps. Neighbouring results share words: with 3x3 taps each needs three products instead of nine, and no shuffles.
#pragma once

#include <cstdint>
#include <optional>

#include "syno/plan/loop_nest.h"

namespace syno::cpp {

/// An axis of the result together with the summed axis that slides over it: place step * i + tap * a + first of the data,
/// where only places in [0, extent) are there.
struct SlidingAxis {
  /// -1 where there is none.
  int axis = -1;
  int tap = -1;
  std::int64_t step = 1;
  std::int64_t dilation = 1;
  std::int64_t first = 0;
  std::int64_t extent = 0;
  /// Elements between neighbouring places of the data, and between neighbouring results.
  std::int64_t data = 0;
  std::int64_t stored = 0;
};

struct Depthwise {
  /// Without the batch; operand `data` and operand `weight`.
  LoopNest nest;
  std::size_t data = 0;
  std::size_t weight = 1;
  /// The channels, which lie side by side in the data and in the result.
  int lane = -1;
  SlidingAxis rows;
  SlidingAxis columns;
  /// Of the first place of the data and of the result.
  std::int64_t data_start = 0;
  std::int64_t stored_start = 0;

  std::int64_t extent(int axis) const {
    return axis < 0 ? 1 : nest.axes[static_cast<std::size_t>(axis)].extent;
  }
};

/// Nothing where the nest is of another kind. The nest is merged and without its batch, and reads codes.
std::optional<Depthwise> match_depthwise(const LoopProgram& program, const LoopNest& nest);

}  // namespace syno::cpp
