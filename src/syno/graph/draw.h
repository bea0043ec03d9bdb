// Drawings of graphs in Graphviz' DOT language.
#pragma once

#include <string>

#include "syno/graph/operator.h"

namespace syno {

/// The input at the top, the output at the bottom, weights at the side; edges are coordinates with their extents.
std::string to_dot(const Operator& op);
std::string to_dot(const Graph& graph);

}  // namespace syno
