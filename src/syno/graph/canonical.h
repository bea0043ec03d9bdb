// One canonical form for each graph: independent of the order of independent steps, the names of reductions, and the
// order of dimensions inside weights.
#pragma once

#include <vector>

#include "syno/graph/graph.h"
#include "syno/support/hash.h"

namespace syno {

/// A 128-bit hash of the structure. `match` is empty for a partial graph, whose frontier is a set; for an operator it
/// lists the frontier coordinate of each input dimension.
Hash128 structure_hash(const Graph& graph, const std::vector<CoordinateId>& match = {});

struct CanonicalGraph {
  Graph graph;
  /// Where each coordinate of the original went.
  std::vector<CoordinateId> renamed;
  Hash128 hash;
};

/// Rebuilds `graph` with its steps in canonical order.
CanonicalGraph canonicalize(const Graph& graph, const std::vector<CoordinateId>& match = {});

}  // namespace syno
