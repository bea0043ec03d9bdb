// Which output elements of a component are equal, up to a common factor, for all inputs and weights.
//
// An element is the sum of its unmasked terms; a term is what it reads at the visible coordinates. Elements are
// proportional when their sums of terms are, which term_sums.h looks at without listing the terms: sums of proportional
// elements have equal values per term. Equal ones are never taken for different; those that look equal are looked at again
// with other random numbers, so that two different ones are taken for equal with a probability of about 2^-118.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "syno/quality/term_sums.h"

namespace syno {

/// How many elements of one class have each scale: the factor that their terms have in common (a window that was
/// expanded counts, near the border, fewer times). Scales matter relative to each other only, so their greatest common
/// divisor is 1.
using Profile = std::map<std::int64_t, std::int64_t>;

struct ComponentClasses {
  /// Nothing is known beyond `dead` when false.
  bool decided = true;
  /// No element of the output has an unmasked term.
  bool dead = false;
  /// Parts of the component that have nothing to do with each other and in which some elements are equal: the profiles
  /// that occur in each. Empty when no two elements are equal.
  std::vector<std::set<Profile>> repeats;
  /// Some class has more elements than was asked about; nothing else is known.
  bool exceeds = false;
};

/// With a `limit` above 0 it may be answered that more elements than that are equal, which is often found at once. What
/// needs more than `most_work` entries of tables is decided by looking at all points, unless there are too many.
ComponentClasses component_classes(const Component& part, const Program& program,
                                   std::int64_t limit = 0,
                                   std::int64_t most_work = TermSums::kMaxWork);

/// Divides the scales by what they have in common.
Profile normalised(const Profile& profile);

}  // namespace syno
