#include "syno/key/orbit.h"

#include <algorithm>

#include "syno/support/at.h"

namespace syno {
namespace {

// The graph with its output iterators moved to other places.
Graph moved(const Graph& graph, const std::vector<int>& places) {
  const auto place = [&](CoordinateId id) {
    const bool is_iterator = id >= 0 && at(id) < places.size();
    return is_iterator ? static_cast<CoordinateId>(places[at(id)]) : id;
  };
  Graph result = graph.root();
  for (Step step : graph.steps()) {
    for (CoordinateId& id : step.in) id = place(id);
    for (auto& dim : step.dims) dim.coordinate = place(dim.coordinate);
    result.apply(std::move(step));
  }
  return result;
}

}  // namespace

OrbitKeyer::OrbitKeyer(const Specification& spec)
    : group_(symmetry_group(spec.symmetries(), spec.output().size(), spec.input().size())),
      keyer_(spec.variables(), spec.bindings()),
      variables_(spec.variables()) {}

std::vector<Hash128> OrbitKeyer::image_keys(const Operator& op) {
  const Operator own = op.in_table(variables_);
  std::vector<Hash128> keys;
  for (const Image& image : group_) {
    const bool moves_output = image.output != group_[0].output;
    const Graph graph = moves_output ? moved(own.graph(), image.output) : own.graph();
    std::vector<CoordinateId> match(own.match().size());
    for (std::size_t d = 0; d < match.size(); ++d) {
      const CoordinateId id = own.match()[d];
      const bool is_iterator = id >= 0 && at(id) < image.output.size();
      match[at(image.input[d])] =
          is_iterator ? static_cast<CoordinateId>(image.output[at(id)]) : id;
    }
    keys.push_back(keyer_.key(graph, own.input(), match, image.mirrored));
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Hash128 OrbitKeyer::key(const Operator& op) {
  return image_keys(op).front();
}

}  // namespace syno
