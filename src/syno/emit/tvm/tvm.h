// Plans as tensor expressions of TVM: a Python file that needs tvm alone.
//
// `prim_func(batch)` is the function of x, w0, w1, ..., y in float32; `build(target, batch)` compiles it. A nest becomes
// one te.compute, so schedules and tuners see each as a block with plain axes; what views mean stands in the indices.
#pragma once

#include <string>

#include "syno/emit/source.h"
#include "syno/plan/plan.h"

namespace syno {

struct TvmOptions {
  /// Goes into the docstring, line by line; may be empty.
  std::string formula;
};

/// Throws UserError when a tensor has more elements than a 32-bit index reaches.
Source emit_tvm(const Plan& plan, const TvmOptions& options = {});

}  // namespace syno
