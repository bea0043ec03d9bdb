#include "syno/graph/cut.h"

#include <algorithm>

namespace syno {
namespace {

bool makes(const Step* step, ExpressionKind kind) {
  return step != nullptr && step->makes(kind);
}

// Collects parts from the last one on until they make `rest`; false when they do not.
bool collect(const Graph& graph, CoordinateId id, bool whole, Held held, Size& rest, Parts& parts) {
  const Step* step = graph.producer(id);
  if (!whole && graph.extent(id) == rest) {
    parts.push_back(id);
    return true;
  }
  if (!makes(step, ExpressionKind::kMixed) ||
      (held == Held::kIsPart && graph.share_count(id) > 0)) {
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
  while (makes(step, ExpressionKind::kCyclicShift)) {
    id = step->in[0];
    step = graph.producer(id);
  }
  Parts parts;
  if (!makes(step, ExpressionKind::kMixed)) return parts;
  Size rest = block;
  if (!collect(graph, id, true, held, rest, parts)) return {};
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace syno
