#include "syno/interp/components.h"

#include <algorithm>
#include <numeric>

#include "syno/support/at.h"

namespace syno {
namespace {

void add_once(std::vector<CoordinateId>& ids, CoordinateId id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

}  // namespace

bool Component::holds(CoordinateId id) const {
  return std::binary_search(coordinates.begin(), coordinates.end(), id);
}

std::vector<Component> components(const AccessMap& map) {
  const std::size_t count = map.expressions.size();
  std::vector<std::size_t> root(count);
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t id) {
    while (root[id] != id) id = root[id] = root[root[id]];
    return id;
  };
  for (std::size_t id = 0; id < count; ++id) {
    for (const CoordinateId below : {map.expressions[id].a, map.expressions[id].b}) {
      if (below != kNoCoordinate) root[find(id)] = find(at(below));
    }
  }
  std::vector<Component> result;
  std::vector<std::size_t> number(count, count);
  for (std::size_t id = 0; id < count; ++id) {
    std::size_t& n = number[find(id)];
    if (n == count) {
      n = result.size();
      result.emplace_back();
    }
    Component& component = result[n];
    const auto coordinate = static_cast<CoordinateId>(id);
    component.coordinates.push_back(coordinate);
    const ExpressionKind kind = map.expressions[id].kind;
    if (is_leaf(kind))
      (is_summed(kind) ? component.reductions : component.iterators).push_back(coordinate);
    component.strided = component.strided || has_gaps(kind);
  }
  for (std::size_t d = 0; d < map.data.size(); ++d) {
    Component& component = result[number[find(at(map.data[d]))]];
    component.data_dims.push_back(static_cast<int>(d));
    component.data.push_back(map.data[d]);
    add_once(component.visible, map.data[d]);
  }
  for (const auto& dims : map.weights) {
    for (const CoordinateId id : dims) add_once(result[number[find(at(id))]].visible, id);
  }
  for (Component& component : result) {
    component.leaves = component.iterators;
    component.leaves.insert(component.leaves.end(), component.reductions.begin(),
                            component.reductions.end());
  }
  return result;
}

std::vector<std::vector<bool>> dependences(const AccessMap& map) {
  const std::size_t count = map.expressions.size();
  std::vector<std::vector<bool>> result(count, std::vector<bool>(count, false));
  for (std::size_t id = 0; id < count; ++id) {
    const Expression& expression = map.expressions[id];
    if (expression.a == kNoCoordinate) result[id][id] = true;
    for (const CoordinateId below : {expression.a, expression.b}) {
      if (below == kNoCoordinate) continue;
      for (std::size_t leaf = 0; leaf < count; ++leaf)
        result[id][leaf] = result[id][leaf] || result[at(below)][leaf];
    }
  }
  return result;
}

std::optional<std::int64_t> box(const Program& program, const std::vector<CoordinateId>& ids,
                                std::int64_t cap) {
  std::int64_t product = 1;
  for (const CoordinateId id : ids) {
    if (program.extent(id) > cap / product) return std::nullopt;
    product *= program.extent(id);
  }
  return product;
}

std::vector<Instruction> instructions(const Program& program, const Component& component) {
  std::vector<Instruction> result;
  for (const auto* list : {&program.outer, &program.inner}) {
    for (const Instruction& instruction : *list) {
      if (component.holds(instruction.out)) result.push_back(instruction);
    }
  }
  return result;
}

}  // namespace syno
