#include "syno/plan/order.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "syno/support/error.h"

namespace syno {
namespace {

// How many sets of one size are followed. An operator of a search has a few hundred in all.
constexpr std::size_t kMaxSets = 20'000;
constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

constexpr StepSet bit(std::size_t step) {
  return StepSet{1} << step;
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : sum;
}

CoordinateSet summed_dims(const Network& network, StepSet reduces) {
  CoordinateSet dims;
  for (std::size_t s = 0; s < network.step_count(); ++s) {
    if ((reduces & bit(s)) != 0) dims.set(static_cast<std::size_t>(network.step(s).out[0]));
  }
  return dims;
}

// The subset of `reduces` whose coordinates are in `data`.
StepSet reduces_in(const Network& network, StepSet reduces, const CoordinateSet& data) {
  StepSet found = 0;
  for (std::size_t s = 0; s < network.step_count(); ++s) {
    if ((reduces & bit(s)) != 0 && data[static_cast<std::size_t>(network.step(s).out[0])])
      found |= bit(s);
  }
  return found;
}

// Elements that a view writes: windows and rotations are copies, in the data and in every weight that waits; the
// other views only re-index. A Merge of which a tensor has one part only repeats it along the other.
std::int64_t written_by_view(const Network& network, std::size_t s, StepSet done,
                             const CoordinateSet& before, const CoordinateSet& after) {
  const Step& view = network.step(s);
  const auto written = [&](const CoordinateSet& from, const CoordinateSet& to) -> std::int64_t {
    if (from == to) return 0;
    switch (view.primitive) {
      case Primitive::kUnfold:
      case Primitive::kShift: return network.elements(to);
      case Primitive::kMerge: {
        const bool both = from[static_cast<std::size_t>(view.out[0])] &&
                          from[static_cast<std::size_t>(view.out[1])];
        return both ? 0 : network.elements(to);
      }
      default: return 0;
    }
  };
  std::int64_t sum = written(before, after);
  for (std::size_t other = 0; other < network.step_count(); ++other) {
    if (!network.is_contraction(other) || (done & bit(other)) != 0) continue;
    const std::size_t weight = network.weight_of(other);
    sum = saturating_add(sum, written(network.weight_dims(weight, done),
                                      network.weight_dims(weight, done | bit(s))));
  }
  return sum;
}

struct Node {
  Cost cost;
  CoordinateSet data;
  StepSet previous = 0;
  PlanMove move;
};

// States with equally many executed steps, in the order in which they were found.
struct Layer {
  std::vector<StepSet> order;
  std::unordered_map<StepSet, Node> nodes;

  void offer(StepSet set, const Node& node) {
    const auto [place, inserted] = nodes.try_emplace(set, node);
    if (inserted) {
      order.push_back(set);
    } else if (node.cost < place->second.cost) {
      place->second = node;
    }
  }
  // Keeps the cheapest sets. Returns whether it had to drop any.
  bool trim() {
    if (order.size() <= kMaxSets) return false;
    std::sort(order.begin(), order.end(), [&](StepSet a, StepSet b) {
      const Cost& cost_a = nodes.at(a).cost;
      const Cost& cost_b = nodes.at(b).cost;
      return cost_a != cost_b ? cost_a < cost_b : a < b;
    });
    order.resize(kMaxSets);
    return true;
  }
};

}  // namespace

Cost operator+(const Cost& a, const Cost& b) {
  return {saturating_add(a.macs, b.macs), saturating_add(a.written, b.written)};
}

StepSet executed_by(const PlanMove& move) {
  StepSet steps = move.reduces | move.folded | move.offline;
  if (move.kind == MoveKind::kView || move.kind == MoveKind::kContract) steps |= bit(move.step);
  return steps;
}

std::vector<PricedMove> moves_from(const Network& network, StepSet done,
                                   const CoordinateSet& data) {
  std::vector<PricedMove> moves;
  for (std::size_t s = 0; s < network.step_count(); ++s) {
    if ((done & bit(s)) != 0) continue;
    if (network.is_contraction(s)) {
      if (!network.contraction_ready(s, done)) continue;
      const CoordinateSet all = data | network.weight_dims(network.weight_of(s), done);
      const StepSet reduces = reduces_in(network, network.ready_reduces(done | bit(s)), all);
      const CoordinateSet left = all & ~summed_dims(network, reduces);
      moves.push_back({{MoveKind::kContract, s, reduces},
                       {network.elements(all), network.elements(left)},
                       left});
    } else if (network.view_ready(s, done)) {
      const CoordinateSet after = network.after_view(s, done, data);
      moves.push_back(
          {{MoveKind::kView, s, 0}, {0, written_by_view(network, s, done, data, after)}, after});
    }
  }
  const StepSet ready = network.ready_reduces(done);
  if (const StepSet sums = reduces_in(network, ready, data); sums != 0) {
    const CoordinateSet left = data & ~summed_dims(network, sums);
    moves.push_back(
        {{MoveKind::kSum, 0, sums}, {network.elements(data), network.elements(left)}, left});
  }
  if (const StepSet scales = ready & ~reduces_in(network, ready, data); scales != 0) {
    const std::int64_t elements = network.elements(data);
    moves.push_back({{MoveKind::kScale, 0, scales}, {elements, elements}, data});
  }
  return moves;
}

Order cheapest_order(const Network& network) {
  const StepSet start = network.nothing_to_do();
  const StepSet goal = network.all_steps();
  Order result;
  std::vector<Layer> layers(kMaxPlanSteps + 1);
  layers[static_cast<std::size_t>(std::popcount(start))].offer(start,
                                                               {{}, network.input_dims(), 0, {}});
  for (Layer& layer : layers) {
    result.exact = !layer.trim() && result.exact;
    for (const StepSet set : layer.order) {
      const Node node = layer.nodes.at(set);
      for (PricedMove& priced : moves_from(network, set, node.data)) {
        const StepSet next = set | executed_by(priced.move);
        layers[static_cast<std::size_t>(std::popcount(next))].offer(
            next, {node.cost + priced.cost, priced.data, set, priced.move});
      }
    }
  }
  StepSet set = goal;
  const auto node_of = [&](StepSet of) -> const Node& {
    const auto& nodes = layers[static_cast<std::size_t>(std::popcount(of))].nodes;
    const auto place = nodes.find(of);
    ensure(place != nodes.end(), "cheapest_order: some steps can never be executed");
    return place->second;
  };
  result.cost = node_of(goal).cost;
  if (result.cost.macs == kSaturated) {
    throw UserError(
        "overflow while computing MACs: every plan of this operator needs more than 2^63-1 of them "
        "under this binding");
  }
  while (set != start) {
    const Node& node = node_of(set);
    result.moves.push_back(node.move);
    set = node.previous;
  }
  std::reverse(result.moves.begin(), result.moves.end());
  return result;
}

}  // namespace syno
