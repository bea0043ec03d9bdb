#include "syno/quality/wasted.h"

#include <algorithm>

#include "syno/graph/cut.h"
#include "syno/interp/components.h"

namespace syno {
namespace {

class WasteFinder {
 public:
  explicit WasteFinder(const Operator& op)
      : graph_(op.graph()), map_(make_access_map(op)), depends_(dependences(map_)) {
    for (std::size_t i = 0; i < map_.expressions.size(); ++i) {
      bool held = graph_.weight_count(static_cast<CoordinateId>(i)) > 0;
      for (const CoordinateId below : {map_.expressions[i].a, map_.expressions[i].b})
        held = held || (below != kNoCoordinate && in_weight(below));
      in_weight_.push_back(held);
    }
  }

  std::vector<Rejection> find() const {
    std::vector<Rejection> result;
    find_expand(result);
    find_unfold(result);
    find_weight(result);
    find_reduce(result);
    return result;
  }

  bool weight_sees(std::size_t t, CoordinateId leaf) const {
    const auto& dims = map_.weights[t];
    return std::any_of(dims.begin(), dims.end(),
                       [&](CoordinateId id) { return depends(id, leaf); });
  }
  const AccessMap& map() const { return map_; }

 private:
  bool depends(CoordinateId id, CoordinateId leaf) const {
    return depends_[static_cast<std::size_t>(id)][static_cast<std::size_t>(leaf)];
  }
  bool reductions_only(CoordinateId id) const {
    return std::none_of(map_.iterators.begin(), map_.iterators.end(),
                        [&](CoordinateId iterator) { return depends(id, iterator); });
  }
  bool in_weight(CoordinateId id) const { return in_weight_[static_cast<std::size_t>(id)]; }
  std::string quoted(CoordinateId id) const { return "'" + graph_.name(id) + "'"; }

  void find_expand(std::vector<Rejection>& result) const {
    for (const Step& step : graph_.steps()) {
      if (!step.is_repetition() || !reductions_only(step.in[0])) continue;
      result.push_back({reason::kWastedExpand, "expand of " + quoted(step.in[0]) +
                                                   ", which depends on reductions only: it only "
                                                   "scales the result"});
      return;
    }
  }

  void find_unfold(std::vector<Rejection>& result) const {
    for (const CoordinateId id : map_.windows) {
      const Expression& expression = map_.at(id);
      if (!reductions_only(id) || in_weight(expression.a) || in_weight(expression.b)) continue;
      result.push_back({reason::kWastedUnfold, "unfold of " + quoted(expression.a) + " and " +
                                                   quoted(expression.b) +
                                                   ", which depend on reductions only and are in "
                                                   "no weight"});
      return;
    }
  }

  // A term multiplies A[u] * B[v] with u among v: C[v] = A[u] * B[v] is any tensor over v already with A = 1, wherever
  // the sums stand, as no reduction of A is missing in B.
  void find_weight(std::vector<Rejection>& result) const {
    for (std::size_t t = 0; t < map_.weights.size(); ++t) {
      for (std::size_t other = 0; other < map_.weights.size(); ++other) {
        if (t == other) continue;
        const auto& dims = map_.weights[t];
        const auto& more = map_.weights[other];
        const bool held = std::all_of(dims.begin(), dims.end(), [&](CoordinateId id) {
          return std::find(more.begin(), more.end(), id) != more.end();
        });
        if (!held) continue;
        result.push_back({reason::kAbsorbedWeight,
                          "weight " + std::to_string(t) + " holds only coordinates that weight " +
                              std::to_string(other) +
                              " also holds: their product is equivalent to weight " +
                              std::to_string(other) + " alone"});
        return;
      }
    }
  }

  void find_reduce(std::vector<Rejection>& result) const {
    for (const CoordinateId reduction : map_.reductions) {
      const bool data = std::any_of(map_.data.begin(), map_.data.end(),
                                    [&](CoordinateId id) { return depends(id, reduction); });
      int weights = 0;
      for (std::size_t t = 0; t < map_.weights.size(); ++t) weights += weight_sees(t, reduction);
      if (data || weights > 1) continue;
      result.push_back({reason::kWastedReduce,
                        "reduction " + quoted(reduction) +
                            (weights == 1 ? " reaches only one weight: it sums that weight"
                                          : " reaches neither data nor a weight")});
      return;
    }
  }

  const Graph& graph_;
  AccessMap map_;
  std::vector<std::vector<bool>> depends_;
  /// By coordinate: whether a weight holds it or something it is made of.
  std::vector<bool> in_weight_;
};

}  // namespace

std::vector<Rejection> wasted_steps(const Operator& op) {
  return WasteFinder(op).find();
}

Reason first_wasted_step(const Graph& graph, const CompactMap& map) {
  const auto depends = [&](int id) { return map.depends[static_cast<std::size_t>(id)]; };
  for (const Step& step : graph.steps()) {
    if (step.is_repetition() && (depends(step.in[0]) & map.iterators) == 0)
      return reason::kWastedExpand;
  }
  // Coordinates that a weight holds or that are made of such.
  CoordinateMask in_weight = map.shared;
  Reason found = reason::kNone;
  for (std::size_t i = 0; i < map.count; ++i) {
    const CompactMap::Node& node = map.nodes[i];
    CoordinateMask below = 0;
    if (node.a >= 0) below |= coordinate_bit(node.a);
    if (node.b >= 0) below |= coordinate_bit(node.b);
    if ((below & in_weight) != 0) in_weight |= coordinate_bit(static_cast<int>(i));
    if (is_masked(node.kind) && (below & in_weight) == 0 &&
        (depends(static_cast<int>(i)) & map.iterators) == 0) {
      found = reason::kWastedUnfold;
    }
  }
  if (!found.empty()) return found;
  for (std::size_t t = 0; t < map.weight_count; ++t) {
    for (std::size_t other = 0; other < map.weight_count; ++other) {
      if (t != other && (map.weights[t] & ~map.weights[other]) == 0) return reason::kAbsorbedWeight;
    }
  }
  CoordinateMask data = 0;
  for_each_bit(map.data, [&](int id) { data |= depends(id); });
  CoordinateMask once = 0;
  CoordinateMask twice = 0;
  for (std::size_t t = 0; t < map.weight_count; ++t) {
    CoordinateMask seen = 0;
    for_each_bit(map.weights[t], [&](int id) { seen |= depends(id); });
    twice |= once & seen;
    once |= seen;
  }
  return (map.reductions & ~data & ~twice) != 0 ? reason::kWastedReduce : reason::kNone;
}

namespace {

// From the coordinates that weights hold back to what follows from them: both parts of a Split from its result, what was
// cyclically shifted or scaled, what was merged from both results, and from a remainder what `learn_parts` says. `node(id)` has
// kind, a and b; what a node uses stands before it.
template <class Node, class Known, class Learn, class LearnParts>
void follow_back(int count, Node node, Known known, Learn learn, LearnParts learn_parts) {
  std::vector<int> parts_known(static_cast<std::size_t>(count), 0);
  for (int id = count; id-- > 0;) {
    if (!known(id)) continue;
    const auto& now = node(id);
    learn_operands(now.kind, now.a, now.b, learn,
                   [&](int of) { return ++parts_known[static_cast<std::size_t>(of)] == 2; });
    learn_parts(id);
  }
}

}  // namespace

CoordinateMask pooled_reductions(const CompactMap& map) {
  CoordinateMask known = map.shared;
  follow_back(
      static_cast<int>(map.count),
      [&](int id) -> const CompactMap::Node& { return map.nodes[static_cast<std::size_t>(id)]; },
      [&](int id) { return (known >> id & 1) != 0; }, [&](int id) { known |= coordinate_bit(id); },
      [&](int id) { known |= map.nodes[static_cast<std::size_t>(id)].told; });
  return map.reductions & ~known;
}

Size pooling_size(const Operator& op) {
  const AccessMap map = make_access_map(op);
  std::vector<bool> known(map.expressions.size(), false);
  for (const auto& weight : map.weights) {
    for (const CoordinateId id : weight) known[static_cast<std::size_t>(id)] = true;
  }
  follow_back(
      static_cast<int>(known.size()),
      [&](int id) -> const Expression& { return map.expressions[static_cast<std::size_t>(id)]; },
      [&](int id) { return known[static_cast<std::size_t>(id)]; },
      [&](int id) { known[static_cast<std::size_t>(id)] = true; },
      [&](int id) {
        const Step* merge = op.graph().producer(static_cast<CoordinateId>(id));
        if (merge == nullptr || !merge->info().cuts() || merge->out[1] != id) return;
        for (const CoordinateId part : parts_cut_again(op.graph(), merge->in[0], merge->size))
          known[static_cast<std::size_t>(part)] = true;
      });
  Size product;
  for (const CoordinateId reduction : map.reductions) {
    if (!known[static_cast<std::size_t>(reduction)]) product = product * map.at(reduction).extent;
  }
  return product;
}

}  // namespace syno
