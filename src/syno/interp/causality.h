// Whether an output reads the future: an input position later than its own, in two dimensions that are the same sequence.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "syno/interp/components.h"

namespace syno {

/// The sequences of an operator: pairs (output dimension, input dimension), the first marked causal with the first, the
/// second with the second. Throws UserError when input and output do not have the same number of them.
std::vector<std::pair<int, int>> causal_pairs(const Operator& op);
std::vector<std::pair<int, int>> causal_pairs(const Shape& output, const Shape& input,
                                              const Variables& variables);

struct FutureReads {
  /// Whether some unmasked term of an output at position t reads input at a position later than t.
  Decision found = Decision::kNo;
  /// kYes: positions of such a term.
  std::int64_t output_position = 0;
  std::int64_t input_position = 0;
};

/// Under one binding. "No" is proved by an interval of input - output position or by looking at all points of the
/// component; "yes" by a point. Undecided only where intervals do not settle it, the component has more than kMaxPoints
/// points, and no leak is among the points looked at.
FutureReads future_reads(const Operator& op, const Values& values, int output_dim, int input_dim);
/// The answer in words: positions that are read, or that it is undecided; empty where nothing later is read.
std::string in_words(const FutureReads& found, int output_dim, int input_dim);
FutureReads future_reads(const std::vector<Component>& parts, const AccessMap& map,
                         const Program& program, int output_dim, int input_dim);

}  // namespace syno
