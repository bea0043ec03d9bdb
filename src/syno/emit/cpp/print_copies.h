// Rows of codes that are stored as they are read, with zeros where nothing may be read: as numbers they would be widened and
// rounded again.
#pragma once

#include <string>

#include "syno/emit/cpp/print_rows.h"

namespace syno::cpp {

bool is_copy(const LoopProgram& program, const RowLoops& rows, const RowEnds& ends);

/// The function of `print_rows`, of rows that are a copy.
void print_copy(Printer& out, const LoopProgram& program, const RowLoops& rows,
                const std::string& name);

}  // namespace syno::cpp
