// A product as C++: a struct with a function that computes the part of one thread.
#pragma once

#include <string>

#include "syno/emit/printer.h"
#include "syno/emit/training/product.h"
#include "syno/plan/loop_nest.h"

namespace syno::training {

/// NAME::run(a, b, y, team). `adds`: to what is there.
void print_product(Printer& out, const LoopProgram& program, const Product& product, bool adds,
                   const std::string& name);

/// What such structs need, behind the C++ emitter's own runtime.
std::string product_runtime();

}  // namespace syno::training
