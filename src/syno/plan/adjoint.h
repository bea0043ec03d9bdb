// The gradients of a plan as loop nests.
//
// Every element of a gradient gathers what it gave: a view of the plan is followed in its own direction, from a place of
// what it reads to the places that it makes of it. Permutations, splits, merges and cyclic shifts give one place, strides
// one or none (a condition), repetitions and windows a sum. So the gradient of a tensor is one nest
//
//     dT[t] = scale * sum over the new axes of dB[...] * the other operand of the stage that reads T
//
// and no two iterations store to the same element. The gradient for the data of a convolution becomes a convolution with
// the mirrored weight, and that for its weight a contraction of the output's gradient with the shifted data, over batch
// and positions.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/plan/loop_nest.h"
#include "syno/plan/plan.h"

namespace syno {

struct GradientProgram {
  /// Reads x, the weights and dy; stores dx and dw0, dw1, ... What the gradients need of the operator itself is computed
  /// again.
  LoopProgram program;
  int output_gradient = -1;
  int input_gradient = -1;
  /// In canonical order.
  std::vector<int> weight_gradients;
};

/// Of a plan without folded weights.
GradientProgram gradient_program(const Plan& plan);

/// The plan for so many elements of the batch, its first dimension, as a size like any other.
Plan with_batch(const Plan& plan, std::int64_t batch);

}  // namespace syno
