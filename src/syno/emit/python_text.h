// What emitters of Python sources share: docstrings, tuples, and names that no other name hides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syno/emit/printer.h"
#include "syno/plan/loop_nest.h"
#include "syno/plan/plan.h"

namespace syno {

/// The docstring of a class or function that computes the plan: shapes, costs and the formula, then `notes`. The
/// formula may be empty and may hold anything.
void print_docstring(Printer& out, const Plan& plan, const std::string& formula,
                     const std::vector<std::string>& notes = {});

/// "(4, 5)", "(4,)", "()".
std::string tuple_text(const std::vector<std::string>& parts);
std::vector<std::string> numbers_text(const std::vector<std::int64_t>& numbers);

/// The names of the nest's axes; those that tensors have get an underscore.
std::vector<std::string> axis_names(const LoopNest& nest);

}  // namespace syno
