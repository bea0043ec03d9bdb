// Nests as loops over rows: vectors lie over one axis of the result, all other axes are loops. This is how panels are
// filled, and how everything runs that is no matrix product: sums, copies, element-wise and depthwise products.
#pragma once

#include <string>
#include <vector>

#include "syno/emit/printer.h"
#include "syno/plan/loop_nest.h"

namespace syno::cpp {

struct RowLoops {
  LoopNest nest;
  /// Axes of the result in the order of the loops, without `lane` and `tile`.
  std::vector<int> outer;
  /// The axis that vectors lie over, or -1 when the result is one element.
  int lane = -1;
  /// An axis that only splat weights depend on: its elements share what is loaded. Or -1.
  int tile = -1;

  /// Iterations of the outer loops, which may be split between threads.
  std::int64_t count() const;
};

/// `keep_order`: the outer loops stay in the order of the axes, so that ranges of them are parts of the result.
RowLoops row_loops(const LoopProgram& program, const LoopNest& nest, bool keep_order);

/// static void NAME(const float* a0, ..., float* to, long begin, long end): iterations [begin, end).
void print_rows(Printer& out, const LoopProgram& program, const RowLoops& rows,
                const std::string& name);

/// A name in C for every axis: its own and an underscore, which no other name has.
std::vector<std::string> c_names(const LoopNest& nest);

/// "const long h_ = i / 7 % 14;" for axes that are flattened into `flat`, outermost first.
void print_decode(Printer& out, const LoopNest& nest, const std::vector<int>& axes,
                  const std::string& flat);

}  // namespace syno::cpp
