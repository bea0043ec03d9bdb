// What a C++ kernel does, phase by phase: which nests run as matrix products, which as loops over rows, what is computed
// in registers or inside of a panel, what is copied first, and how intermediate tensors lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syno/emit/cpp/contraction.h"
#include "syno/emit/cpp/cpp.h"
#include "syno/emit/cpp/depthwise.h"
#include "syno/emit/cpp/rows.h"
#include "syno/emit/cpp/tuning.h"
#include "syno/plan/loop_nest.h"
#include "syno/plan/plan.h"

namespace syno::cpp {

struct Phase {
  /// The nest whose result it stores, and its MACs; -1 for copies.
  int nest = -1;
  std::int64_t macs = 0;
  NestTuning tuning;
  /// The nest as a matrix product, whether it runs as one or not; nothing where it cannot.
  std::optional<Contraction> possible;
  /// Rows: the loops. Contractions: how the panel is filled, if there is one.
  std::optional<RowLoops> rows;
  std::optional<Contraction> contraction;
  /// A depthwise convolution of codes.
  std::optional<Depthwise> depthwise;
  int store = -1;
  /// A line a nest.
  std::string text;
  /// Contractions with a panel: the buffer it is.
  int panel = -1;
};

/// Number formats of a kernel.
struct Formats {
  Precision precision = Precision::kFloat32;
  /// Of x, and of y and residual.
  Element input = Element::kFloat32;
  Element output = Element::kFloat32;
  /// Of what contractions give to others.
  Element values = Element::kFloat32;
};

struct Schedule {
  Formats formats;
  /// Its buffers are also panels and copies; tensors have their dimensions in the order of memory.
  LoopProgram program;
  /// By buffer.
  std::vector<Element> elements;
  /// All threads finish one before the next begins.
  std::vector<Phase> phases;
};

/// UserError for malformed options.
Schedule schedule(const Plan& plan, const CppOptions& options);

/// Whether neighbouring columns of a product lie side by side in its data and in its result, so that vectors may lie over
/// them.
bool columns_side_by_side(const LoopProgram& program, const Contraction& c);

/// The terms of a flat index that depend on some axes alone; nothing when a term mixes them with others.
std::optional<Index> part_of(const Index& index, const std::vector<int>& axes,
                             std::size_t axis_count);

}  // namespace syno::cpp
