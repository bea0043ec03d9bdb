// A copy of what a nest reads of an operand, in an order in which it can be read fast: some axes side by side, no masks,
// no quotients, no remainders. Where an index of the operand is a sum of axes, as h + a is of a place and a window, the
// copy has the sum for a dimension instead of both, so that no element is copied twice.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syno/plan/loop_nest.h"

namespace syno::training {

struct Panel {
  /// Stores to the copy, whose buffer is to be set in `fill.store` and `read`.
  LoopNest fill;
  /// The operand, read from the copy: affine, without conditions.
  Access read;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
};

/// The innermost dimensions of the copy are the axes `columns`, in that order.
Panel make_panel(const LoopProgram& program, const LoopNest& nest, std::size_t operand,
                 const std::vector<int>& columns);

}  // namespace syno::training
