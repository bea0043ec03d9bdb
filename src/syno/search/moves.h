// Moves: the operators one change away from an operator, whether or not a space holds them.
//
// A move changes the value of one coefficient, divides a reduction by one coefficient more or less, adds or removes an index
// of a weight, or adds, removes or dilates a window. What it makes is an operator of the same shapes, legal as a graph;
// whether a specification admits it, and whether it is any good, is for others to say.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

/// The values of coefficients by name, in the order of whoever has them.
using Coefficients = std::vector<std::pair<std::string, std::int64_t>>;

struct MoveOptions {
  /// The variable that is the size of windows, its value in a window that a move adds, and its values after a move.
  std::string window = "k";
  std::int64_t usual_window = 3;
  std::vector<std::int64_t> windows{5, 3};
  /// The coefficient that moves divide and dilate by, where the operator has none, and its value.
  std::string factor = "s";
  std::int64_t usual_factor = 2;
  /// Moves give no coefficient a value outside.
  std::int64_t smallest = 2;
  std::int64_t largest = 64;
};

struct MovedOperator {
  Operator op;
  /// Of those of its variables that the original or the move gives a value.
  Coefficients sizes;
};

/// The operators one move away from `op` with these values of its coefficients, in a fixed order. One that two moves lead to
/// stands there twice.
std::vector<MovedOperator> moved_operators(const Operator& op, const Coefficients& sizes,
                                           const MoveOptions& options = {});

}  // namespace syno
