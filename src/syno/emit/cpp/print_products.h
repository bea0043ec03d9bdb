// The text of structs that describe contractions and depthwise convolutions to the runtime.
#pragma once

#include <string>

#include "syno/emit/cpp/contraction.h"
#include "syno/emit/cpp/depthwise.h"
#include "syno/emit/cpp/tuning.h"
#include "syno/emit/printer.h"

namespace syno::cpp {

/// channel: the dimension of the result that an epilogue has values for; -1: none, or results do not go through one.
void print_contraction(Printer& out, const LoopProgram& program, const Contraction& c,
                       const std::string& name, const NestTuning& tuning, int channel);
void print_depthwise(Printer& out, const LoopProgram& program, const Depthwise& d,
                     const std::string& name, int channel);

}  // namespace syno::cpp
