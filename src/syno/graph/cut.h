// Merges that cut what Splits put together.
#pragma once

#include <cstdint>

#include "syno/graph/graph.h"

namespace syno {

using Parts = InlineVector<CoordinateId, 6>;

/// What a weight holds may be looked through, or be a part.
enum class Held : std::uint8_t { kLookThrough, kIsPart };

/// The last parts of the nested Splits that `id` is a cyclic shift of, major first, where their product is `block`: the
/// remainder of a Merge of `id` by `block` is an index of them together, cyclically shifted. Empty where there are no such parts.
Parts parts_cut_again(const Graph& graph, CoordinateId id, const Size& block,
                      Held held = Held::kLookThrough);

}  // namespace syno
