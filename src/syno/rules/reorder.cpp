#include "syno/rules/reorder.h"

#include <utility>

namespace syno {

bool holds(const Step& step, CoordinateId id) {
  for (const SharedDim& dim : step.dims) {
    if (dim.coordinate == id) return true;
  }
  return false;
}

void move_what_follows(const Graph& graph, std::vector<bool>& moved) {
  const auto needs_moved = [&](const Step& step) {
    const auto made_by_moved = [&](CoordinateId id) {
      return graph.coordinate(id).step >= 0 &&
             moved[static_cast<std::size_t>(graph.coordinate(id).step)];
    };
    for (const SharedDim& dim : step.dims) {
      if (made_by_moved(dim.coordinate)) return true;
    }
    for (const CoordinateId in : step.in) {
      if (in == kNoCoordinate) continue;
      if (made_by_moved(in)) return true;
      // Weights hold a coordinate before a view takes it.
      for (std::size_t s = 0; s < moved.size(); ++s) {
        if (moved[s] && holds(graph.steps()[s], in)) return true;
      }
    }
    return false;
  };
  for (std::size_t s = 0; s < moved.size(); ++s)
    moved[s] = moved[s] || needs_moved(graph.steps()[s]);
}

Step with_roles(const Graph& original, std::size_t index, const std::vector<bool>& taken,
                const Graph& now, Step renamed) {
  const Step& step = original.steps()[index];
  for (std::size_t d = 0; d < step.dims.size(); ++d) {
    const CoordinateId id = step.dims[d].coordinate;
    bool leaves = false;
    bool held_later = false;
    for (std::size_t s = 0; s < original.steps().size(); ++s) {
      for (const SharedDim& dim : original.steps()[s].dims) {
        if (dim.coordinate != id) continue;
        leaves = leaves || dim.role != ShareRole::kKeep;
        held_later = held_later || (s != index && !taken[s]);
      }
    }
    renamed.dims[d].role = !leaves || held_later                             ? ShareRole::kKeep
                           : now.share_count(renamed.dims[d].coordinate) > 0 ? ShareRole::kJoin
                                                                             : ShareRole::kDrop;
  }
  return renamed;
}

}  // namespace syno
