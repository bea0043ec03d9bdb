// The text of loops over rows.
#pragma once

#include <string>
#include <vector>

#include "syno/emit/cpp/rows.h"
#include "syno/emit/printer.h"

namespace syno::cpp {

/// static void NAME(const float* a0, ..., float* to, long begin, long end): iterations [begin, end).
/// has_epilogue: with one more parameter, what happens to results before they are stored.
void print_rows(Printer& out, const LoopProgram& program, const RowLoops& rows,
                const std::string& name, bool has_epilogue);

/// A name in C for every axis: its own and an underscore, which no other name has.
std::vector<std::string> c_names(const LoopNest& nest);

/// "const long h_ = i / 7 % 14;" for axes that are flattened into `flat`, outermost first.
void print_decode(Printer& out, const LoopNest& nest, const std::vector<int>& axes,
                  const std::string& flat);

}  // namespace syno::cpp
