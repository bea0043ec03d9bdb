// Which steps of a graph have to stand before which, and what follows when rules move contractions behind other steps.
#pragma once

#include <functional>
#include <vector>

#include "syno/graph/graph.h"

namespace syno {

/// `needed` marks steps: marks every step, too, that one of them needs to stand before it. A step needs what made the
/// coordinates it takes, and the weights that hold those it consumes, unless `waits(step, coordinate)` says otherwise.
void add_needed_steps(const Graph& graph, std::vector<bool>& needed,
                      const std::function<bool(std::size_t, CoordinateId)>& waits = {});

/// `moved` marks contractions that shall stand later: marks every step, too, that needs one of them to stand before it.
void move_what_follows(const Graph& graph, std::vector<bool>& moved);

/// The contraction `renamed`, which was step `index` of `original`, with roles that fit a new order: the last weight that
/// holds a coordinate which leaves takes it out. `taken` marks the steps of `original` that stand in `now` already.
Step with_roles(const Graph& original, std::size_t index, const std::vector<bool>& taken,
                const Graph& now, Step renamed);

}  // namespace syno
