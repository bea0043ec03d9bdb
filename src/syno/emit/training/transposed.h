// Copies in which neighbours in memory are no neighbours in the copy: squares of vectors, transposed in registers.
#pragma once

#include <optional>
#include <string>

#include "syno/emit/cpp/rows.h"
#include "syno/emit/printer.h"
#include "syno/plan/loop_nest.h"

namespace syno::training {

struct TransposedCopy {
  /// One operand, nothing summed or scaled.
  LoopNest nest;
  /// Side by side in the operand, and in the copy.
  int read = -1;
  int stored = -1;
  std::vector<int> outer;

  /// Iterations of the outer loops, which may be split between threads.
  std::int64_t count() const;
};

/// Nothing where the rows are no such copy.
std::optional<TransposedCopy> transposed_copy(const LoopProgram& program,
                                              const cpp::RowLoops& rows);

/// A function with the parameters of cpp::print_rows.
void print_transposed(Printer& out, const LoopProgram& program, const TransposedCopy& copy,
                      const std::string& name);

}  // namespace syno::training
