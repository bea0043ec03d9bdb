// Canonical labelling: numbers for the digits that do not depend on the order in which they were
// found.
//
// Colours start as extents and are refined by the forms a digit is in. While two digits keep one
// colour, every member of the smallest such cell is set apart in turn, and the least encoding of
// all leaves is the result. The encoding holds the whole labelled normal form, never colours, so
// two encodings are equal only for the same normal form.
#pragma once

#include <string>
#include <vector>

#include "syno/access/key_points.h"

namespace syno::key {

inline constexpr int kMaxLeaves = 200;
inline constexpr std::size_t kMaxDigits = 60;

struct Labelled {
  /// A word string that can be read back in one way only.
  std::vector<Integer> words;
  /// The bases of the digits, by label.
  std::vector<int> order;
};

/// Throws CapExceeded when more than kMaxLeaves leaves would have to be compared.
Labelled label(const Points& points);

/// The normal form in readable lines; digits are d0:extent, d1:extent, ...
std::string normal_form_text(const Points& points, const Labelled& labelled);

}  // namespace syno::key
