// Plans as C++ for training: one self-contained translation unit with a plain C interface, float32.
//
//   void NAME_run(x, weights, y, workspace, batch, threads)
//   void NAME_gradients(x, weights, dy, dx, dweights, workspace, batch, threads)
//   long NAME_run_workspace(int threads), NAME_gradients_workspace(int threads)     floats of scratch memory
//
// `weights` and `dweights` are arrays of pointers in canonical order. dx may be null: then it is not computed. The batch
// is worked on in blocks of `images`, so that products have long rows; a block that is not full is filled with zeros.
#pragma once

#include <cstdint>
#include <string>

#include "syno/emit/source.h"
#include "syno/plan/plan.h"

namespace syno {

struct TrainingOptions {
  std::string name = "syno_operator";
  std::string formula = {};
  /// Without the part that is the same in all files, which must then stand before it.
  bool with_runtime = true;
  /// Elements of the batch in a block; 0 chooses.
  std::int64_t images = 0;
};

Source emit_training(const Plan& plan, const TrainingOptions& options = {});

/// What stands before the first operator where `with_runtime` is off.
std::string training_runtime();

}  // namespace syno
