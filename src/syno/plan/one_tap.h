// A contraction whose result is sheared, as one convolution.
//
//     T[c, j, I] = sum(r) x[r, I] * w[c, j, r]                 the window index j enters before its window is taken
//     Z[c, j, i] = T[c, j, i + j - before], or 0
//
// is a convolution of x along i whose kernels have one tap each: the weight w[c, j, r] stands at tap j of kernel (c, j).
// It multiplies with zeros, as often as the window is long, and takes one call of a library instead of a contraction,
// paddings and copies.
#pragma once

#include "syno/plan/plan.h"

namespace syno {

/// The plan with such pairs of stages as a kDiagonal of the weight and a convolution, where the zeros cost at most
/// `most_extra` times the MACs of the plan. Costs are those of the new stages.
Plan with_one_tap_windows(const Plan& plan, double most_extra);

}  // namespace syno
