// Shapes: lists of dimensions.
//
//     shape     := '[' ( dimension (',' dimension)* )? ']'
//     dimension := size ( ':' flag )*
//     flag      := 'unordered' | 'causal'
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "syno/sizes/size.h"

namespace syno {

struct Dimension {
  Size size;
  /// Permuting the index of this dimension changes nothing that matters, as for channels.
  bool unordered = false;
  /// A sequence: an output position never reads a later input position.
  bool causal = false;

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

using Shape = std::vector<Dimension>;

std::string shape_text(const Shape& shape, const Variables& variables);
/// Throws UserError with the column for malformed text, unknown variables and flags.
Shape parse_shape(std::string_view text, const Variables& variables);
/// The names of the variables in a shape string.
std::vector<std::string> variables_in_shape(std::string_view text);

}  // namespace syno
