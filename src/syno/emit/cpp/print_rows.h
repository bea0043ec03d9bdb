// The text of loops over rows.
#pragma once

#include <string>
#include <vector>

#include "syno/emit/cpp/rows.h"
#include "syno/emit/printer.h"

namespace syno::cpp {

/// How rows read and store numbers.
struct RowEnds {
  /// By operand, how its elements stand in memory; without an entry float32.
  std::vector<Element> operands;
  /// Through an epilogue, which is one more parameter.
  bool epilogue = false;
  /// The dimension of the result, in the order of memory, that its channels are of; -1: it has none.
  int channel = -1;
  /// Codes are stored with the zero and the scale that they are read with.
  bool same_codes = false;
};

/// static void NAME(const float* a0, ..., float* to, long begin, long end): iterations [begin, end). Pointers of other
/// formats have other types.
void print_rows(Printer& out, const LoopProgram& program, const RowLoops& rows,
                const std::string& name, const RowEnds& ends = {});

/// A name in C for every axis: its own and an underscore, which no other name has.
std::vector<std::string> c_names(const LoopNest& nest);

/// "const long h_ = i / 7 % 14;" for axes that are flattened into `flat`, outermost first.
void print_decode(Printer& out, const LoopNest& nest, const std::vector<int>& axes,
                  const std::string& flat);

/// "static_cast<unsigned long>(VALUE) < 7": whether it is in [0, extent).
std::string range_test(const std::string& value, std::int64_t extent);

/// Opens a loop over runs of the innermost of the outer axes: iterations [i, next) of those that begin at `from`.
void open_runs(Printer& out, const RowLoops& rows);

}  // namespace syno::cpp
