// Listing one depth limit after the other, so that each complete one can be kept before the next begins.
#pragma once

#include <functional>
#include <string_view>

#include "syno/space/enumerate.h"

namespace syno {

/// Why a listing ended.
enum class ListingEnd : std::uint8_t {
  kComplete,  ///< the depth that was asked for is listed
  kStopped,   ///< the progress callback said so
  kSeconds,   ///< max_seconds
  kBudget,    ///< max_nodes or max_memory
};
/// "complete", "stopped", "max_seconds", "max_nodes", "max_memory", or "max_nodes or max_memory" where both are given.
std::string_view listing_end_name(ListingEnd end, const EnumerateOptions& options);

struct Listing {
  /// Of the last complete limit; what was found so far where there is none with an operator. Its `visited` counts all
  /// limits of this listing.
  Space space;
  ListingEnd end = ListingEnd::kComplete;
};

/// Called with the space of each depth limit that was listed completely.
using LimitListed = std::function<void(const Space&)>;

/// list_space, one limit at a time. `before`, where it is given, holds what is listed already, up to its complete_depth:
/// the listing goes on from there, and returns `before` when no further limit is completed.
Listing deepen(const Specification& spec, const EnumerateOptions& options,
               const EnumerateProgress& progress = {}, const LimitListed& on_limit = {},
               const Space* before = nullptr);

}  // namespace syno
