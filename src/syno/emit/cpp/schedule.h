// What a C++ kernel does, phase by phase: which nests run as matrix products, which as loops over rows, what is computed
// in registers or inside of a panel, what is copied first, and how intermediate tensors lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syno/emit/cpp/contraction.h"
#include "syno/emit/cpp/rows.h"
#include "syno/plan/loop_nest.h"
#include "syno/plan/plan.h"

namespace syno::cpp {

struct Phase {
  /// Rows: the loops. Contractions: how the panel is filled, if there is one.
  std::optional<RowLoops> rows;
  std::optional<Contraction> contraction;
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
};

struct Schedule {
  /// Its buffers are also panels and copies; tensors have their dimensions in the order of memory.
  LoopProgram program;
  /// By buffer.
  std::vector<Element> elements;
  /// All threads finish one before the next begins.
  std::vector<Phase> phases;
};

/// The orders of the dimensions of x and y in memory; empty: row-major.
Schedule schedule(const Plan& plan, std::int64_t cache_floats, const std::vector<int>& input_order,
                  const std::vector<int>& output_order, const Formats& formats = {});

/// The terms of a flat index that depend on some axes alone; nothing when a term mixes them with others.
std::optional<Index> part_of(const Index& index, const std::vector<int>& axes,
                             std::size_t axis_count);

}  // namespace syno::cpp
