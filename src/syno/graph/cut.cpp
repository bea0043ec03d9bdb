#include "syno/graph/cut.h"

#include <algorithm>

namespace syno {
namespace {

bool joins(const Step* step) {
  return step != nullptr && step->info().joins();
}

// Collects parts from the last one on until they make `rest`; false when they do not.
bool collect(const Graph& graph, CoordinateId id, bool whole, Held held, Size& rest, Parts& parts) {
  const Step* step = graph.producer(id);
  if (!whole && graph.extent(id) == rest) {
    parts.push_back(id);
    return true;
  }
  if (!joins(step) || (held == Held::kIsPart && graph.weight_count(id) > 0)) {
    parts.push_back(id);
    rest = rest / graph.extent(id);
    return false;
  }
  return collect(graph, step->in[1], false, held, rest, parts) ||
         collect(graph, step->in[0], false, held, rest, parts);
}

}  // namespace

Parts parts_cut_again(const Graph& graph, CoordinateId id, const Size& block, Held held) {
  const Step* step = graph.producer(id);
  while (step != nullptr && step->info().permutes()) {
    id = step->in[0];
    step = graph.producer(id);
  }
  Parts parts;
  if (!joins(step)) return parts;
  Size rest = block;
  if (!collect(graph, id, true, held, rest, parts)) return {};
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace syno
