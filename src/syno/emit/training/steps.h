// What compiled code for training does, step by step: which nests run as matrix products, which as loops over rows, and
// what is copied between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syno/emit/cpp/rows.h"
#include "syno/emit/training/product.h"
#include "syno/emit/training/transposed.h"
#include "syno/plan/loop_nest.h"

namespace syno::training {

struct Step {
  /// One of them; without any, `read` is added to `store`, element by element.
  std::optional<Product> product;
  std::optional<cpp::RowLoops> rows;
  std::optional<TransposedCopy> transposed;
  int read = -1;
  int store = -1;
  /// Adds to what is there.
  bool adds = false;
  /// Runs once, behind all blocks of the batch.
  bool last = false;
  /// Only the gradient of the input needs it.
  bool for_input_gradient = false;
  /// The nest, or what is copied.
  std::string text;

  /// What runs, or nothing.
  const LoopNest* nest() const;
};

struct Steps {
  /// Its buffers are also panels, copies and sums.
  LoopProgram program;
  std::vector<Step> steps;
  /// Values that are zero before the first block, and kept from one block to the next.
  std::vector<bool> kept;
};

/// `sums`: buffers that sum over all blocks of the batch. `input_gradient`: or -1.
Steps steps_of(LoopProgram program, const std::vector<int>& sums, int input_gradient);

}  // namespace syno::training
