#include "syno/quality/compact_map.h"

#include <limits>

#include "syno/graph/cut.h"
namespace syno {

bool CompactMap::read(const Graph& graph, std::span<const CoordinateId> matched,
                      ExtentTable& extents) {
  const auto& coordinates = graph.coordinates();
  if (coordinates.size() > kMaxCoordinates || graph.weights().size() > kMaxWeights ||
      matched.size() > kMaxCoordinates) {
    return false;
  }
  count = coordinates.size();
  iterators = reductions = windows = strides = data = shared = 0;
  fit = ~FitMask{0};
  FitMask factors = ~FitMask{0};
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<CoordinateId>(i);
    const CoordinateMask self = coordinate_bit(static_cast<int>(i));
    const Step* step = graph.producer(id);
    Node node;
    node.extent = extents.number(graph.extent(id));
    fit &= extents.fit(node.extent);
    if (step == nullptr) {
      iterators |= self;
    } else {
      if (step->amount > std::numeric_limits<std::int16_t>::max() ||
          step->amount < std::numeric_limits<std::int16_t>::min()) {
        return false;
      }
      const std::int16_t index = graph.coordinate(id).index;
      node.kind = step->info().makes[static_cast<std::size_t>(index)];
      node.amount = static_cast<std::int16_t>(step->amount);
      node.causal = step->causal;
      node.a = step->in[0];
      node.b = step->in[1];
      if (step->info().cuts() && index == 1) {
        for (const CoordinateId part : parts_cut_again(graph, step->in[0], step->size))
          node.told |= coordinate_bit(part);
      }
      if (is_masked(node.kind)) windows |= self;
      if (is_summed(node.kind)) reductions |= self;
      if (has_gaps(node.kind)) {
        strides |= self;
        factors &= extents.fit(extents.number(step->size));
      }
    }
    nodes[i] = node;
    depends[i] = node.a < 0 ? self : depends[static_cast<std::size_t>(node.a)];
    if (node.b >= 0) depends[i] |= depends[static_cast<std::size_t>(node.b)];
  }
  if ((fit & ~factors) != 0) return false;
  weight_count = 0;
  for (const Weight& weight : graph.weights()) {
    CoordinateMask dims = 0;
    for (const CoordinateId id : weight.dims) dims |= coordinate_bit(id);
    weights[weight_count++] = dims;
    shared |= dims;
  }
  rank = 0;
  for (const CoordinateId id : matched) {
    match[rank++] = id;
    data |= coordinate_bit(id);
  }
  return true;
}

}  // namespace syno
