// Symmetries of the data: changes of input and output that a network's data does not notice, such as a mirrored image.
//
//     symmetry := 'mirror' dim | 'exchange' dim dim | 'transpose' dim dim        "mirror 2", "exchange 2 3"
//
// Dimensions are numbers from 0 that stand for the same dimension of input and output. A symmetry maps an operator f to
// the operator g with g(S(x)) = S(f(x)): mirrored data is mapped to the mirrored result.
//
//     mirror d       S reverses dimension d
//     exchange a b   S exchanges dimensions a and b
//     transpose a b  g(x) = S(f(x)), where S exchanges a and b: the result alone is transposed. No symmetry of the data,
//                    but of a network in which nothing else tells the two dimensions apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

struct Symmetry {
  enum class Kind : std::uint8_t { kMirror, kExchange, kTranspose };
  Kind kind = Kind::kMirror;
  int a = 0;
  /// Of kExchange and kTranspose.
  int b = 0;
  friend bool operator==(const Symmetry&, const Symmetry&) = default;
};

/// Throws UserError with the column.
Symmetry parse_symmetry(std::string_view text);
std::string symmetry_text(const Symmetry& symmetry);
/// Throws UserError where a dimension does not exist, is causal, or cannot be exchanged: exchanged dimensions have equal
/// sizes and flags in the output, and in the input.
void check_symmetries(const std::vector<Symmetry>& symmetries, const Shape& input,
                      const Shape& output, const Variables& variables);

/// One element of the group that symmetries generate: dimensions are moved, then some are reversed.
struct Image {
  /// By dimension of the original: its place. Of output and input.
  std::vector<int> output;
  std::vector<int> input;
  /// By place: whether it is reversed. Output places are bits from 0, input places follow.
  std::uint64_t mirrored = 0;
  friend auto operator<=>(const Image&, const Image&) = default;
};

/// All elements of the group, the identity first. At most 2^10.
std::vector<Image> symmetry_group(const std::vector<Symmetry>& symmetries, std::size_t outputs,
                                  std::size_t inputs);

}  // namespace syno
