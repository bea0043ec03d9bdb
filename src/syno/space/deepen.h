// Enumeration of a space one depth limit after the other, so that each complete space can be saved before the next begins.
#pragma once

#include <functional>
#include <string_view>

#include "syno/space/enumerate.h"

namespace syno {

/// Why an enumeration ended.
enum class EnumerationEnd : std::uint8_t {
  kComplete,  ///< the requested depth is enumerated
  kStopped,   ///< the progress callback ended it
  kSeconds,   ///< max_seconds
  kBudget,    ///< max_nodes or max_memory
};
/// "complete", "stopped", "max_seconds", "max_nodes", "max_memory", or "max_nodes or max_memory" if both are given.
std::string_view enumeration_end_name(EnumerationEnd end, const EnumerateOptions& options);

struct EnumeratedSpace {
  /// The space of the last complete limit, or what was found so far if that has no operator. Its `visited` counts all
  /// limits of this enumeration.
  Space space;
  EnumerationEnd end = EnumerationEnd::kComplete;
};

/// Called with the space of each depth limit that was enumerated completely.
using LimitListed = std::function<void(const Space&)>;

/// Calls enumerate_space for one limit at a time. `before` may be a space that is enumerated up to its complete_depth:
/// the enumeration continues from there, and returns `before` if no further limit is completed.
EnumeratedSpace deepen(const Specification& spec, const EnumerateOptions& options,
                       const EnumerateProgress& progress = {}, const LimitListed& on_limit = {},
                       const Space* before = nullptr);

}  // namespace syno
