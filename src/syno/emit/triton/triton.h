// Plans as Triton kernels: a Python file that needs torch and triton alone, with one kernel a nest.
//
// A nest that multiplies two tensors and sums enough is a matrix product over tiles (an implicit GEMM): its axes are rows
// (results that only the weight knows), columns (the others), a batch (in both) and terms (summed); flat numbers of
// each are taken apart into axes, which give the addresses and masks of both operands. Other nests sum tiles of terms
// for flat positions of the result. Everything is accumulated in float32.
#pragma once

#include <cstdint>
#include <string>

#include "syno/emit/source.h"
#include "syno/plan/plan.h"

namespace syno {

struct TritonOptions {
  /// Goes into the docstring, line by line; may be empty.
  std::string formula;
  /// A nest with fewer rows or terms than this is not worth a matrix product.
  std::int64_t least_product = 8;
};

/// Throws UserError when a tensor has more elements than a 32-bit index reaches.
Source emit_triton(const Plan& plan, const TritonOptions& options = {});

}  // namespace syno
