// Names and places of a plan's dimensions.
#pragma once

#include <vector>

#include "syno/plan/network.h"
#include "syno/plan/plan.h"

namespace syno {

/// One PlanDim a coordinate, in the order of coordinates. A dimension is called after the variable of its extent (c for
/// C_out); a dimension that a window is taken from is the capital of the window's place (H = h + k).
std::vector<PlanDim> name_dims(const Network& network);

/// For each coordinate where it belongs in a tensor on its way to the output: sorting by these puts dimensions of the
/// output in their order, the two parts of a Merge side by side, and reductions last.
std::vector<std::vector<int>> placement_keys(const Network& network);

}  // namespace syno
