#include "syno/rules/reorder.h"

#include <utility>

#include "syno/rules/rebuild.h"
namespace syno {

void add_needed_steps(const Graph& graph, std::vector<bool>& needed,
                      const std::function<bool(std::size_t, CoordinateId)>& waits) {
  const auto need = [&](CoordinateId id) {
    if (!graph.is_iterator(id)) needed[step_of(graph, id)] = true;
  };
  // Steps stand after what they need, so one pass from the end is enough.
  for (std::size_t s = needed.size(); s-- > 0;) {
    if (!needed[s]) continue;
    const Step& step = graph.steps()[s];
    for (const WeightDim& dim : step.dims) need(dim.coordinate);
    for (const CoordinateId in : step.in) {
      if (in == kNoCoordinate) continue;
      need(in);
      if (waits && !waits(s, in)) continue;
      for (const Weight& weight : graph.weights()) {
        if (weight.holds(in)) needed[static_cast<std::size_t>(weight.step)] = true;
      }
    }
  }
}

void move_what_follows(const Graph& graph, std::vector<bool>& moved) {
  const auto needs_moved = [&](const Step& step) {
    const auto made_by_moved = [&](CoordinateId id) {
      return graph.coordinate(id).step >= 0 &&
             moved[static_cast<std::size_t>(graph.coordinate(id).step)];
    };
    for (const WeightDim& dim : step.dims) {
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
      for (const WeightDim& dim : original.steps()[s].dims) {
        if (dim.coordinate != id) continue;
        leaves = leaves || dim.role != WeightRole::kKeep;
        held_later = held_later || (s != index && !taken[s]);
      }
    }
    renamed.dims[d].role = !leaves || held_later                              ? WeightRole::kKeep
                           : now.weight_count(renamed.dims[d].coordinate) > 0 ? WeightRole::kJoin
                                                                              : WeightRole::kDrop;
  }
  return renamed;
}

}  // namespace syno
