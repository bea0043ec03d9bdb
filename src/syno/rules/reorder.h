// What rules share that move contractions behind other steps.
#pragma once

#include <vector>

#include "syno/graph/graph.h"

namespace syno {

/// Whether a contraction holds the coordinate.
bool holds(const Step& step, CoordinateId id);

/// `moved` marks contractions that shall stand later: marks every step, too, that needs one of them to stand before it.
void move_what_follows(const Graph& graph, std::vector<bool>& moved);

/// The contraction `renamed`, which was step `index` of `original`, with roles that fit a new order: the last weight that
/// holds a coordinate which leaves takes it out. `taken` marks the steps of `original` that stand in `now` already.
Step with_roles(const Graph& original, std::size_t index, const std::vector<bool>& taken,
                const Graph& now, Step renamed);

}  // namespace syno
