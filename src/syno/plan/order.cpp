#include "syno/plan/order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "syno/support/error.h"
#include "syno/support/interrupt.h"

namespace syno {
namespace {

// How many sets of one size are followed. An operator of a search has a few hundred in all.
constexpr std::size_t kMaxSets = 20'000;
// Moves that are priced before fewer sets are followed, and how many these are.
constexpr std::size_t kMaxMoves = 2'000'000;
constexpr std::size_t kFewSets = 200;
constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : sum;
}

// The weights that wait in a state: every move from it is priced with their dimensions.
class Waiting {
 public:
  Waiting(const Network& network, StepSet done) : network_(network) {
    for (std::size_t s = 0; s < network.step_count(); ++s) {
      if (network.is_contraction(s)) {
        if ((done & step_bit(s)) == 0) dims_[s] = network.weight_dims(network.weight_of(s), done);
        all_ |= dims_[s];
        before_[s] = all_;
      } else {
        before_[s] = all_;
        if (network.is_reduce(s) && (done & step_bit(s)) == 0 && network.is_open(s, done))
          open_reduces_ |= step_bit(s);
      }
    }
    CoordinateSet behind;
    for (std::size_t s = network.step_count(); s-- > 0;) {
      behind_[s] = behind;
      behind |= dims_[s];
    }
  }

  /// None when `s` is no contraction or has been executed.
  const CoordinateSet& dims(std::size_t s) const { return dims_[s]; }
  /// The Reduces that may be summed, when all weights wait, or all but that of `s`.
  StepSet ready_reduces() const { return open_but(all_); }
  StepSet ready_reduces_without(std::size_t s) const {
    return open_but((s > 0 ? before_[s - 1] : CoordinateSet()) | behind_[s]);
  }

 private:
  StepSet open_but(const CoordinateSet& held) const {
    StepSet ready = open_reduces_;
    for (StepSet left = open_reduces_; left != 0; left &= left - 1) {
      const auto s = static_cast<std::size_t>(std::countr_zero(left));
      if (held[static_cast<std::size_t>(network_.step(s).out[0])]) ready &= ~step_bit(s);
    }
    return ready;
  }

  const Network& network_;
  std::array<CoordinateSet, kMaxPlanSteps> dims_;
  /// The dimensions of all weights that wait: all, those of steps up to one, those of steps behind one.
  CoordinateSet all_;
  std::array<CoordinateSet, kMaxPlanSteps> before_;
  std::array<CoordinateSet, kMaxPlanSteps> behind_;
  StepSet open_reduces_ = 0;
};

// Elements that a view writes: windows and cyclic shifts are copies, in the data and in every weight that waits; the
// other views only re-index. A Merge of which a tensor has one part only repeats it along the other.
std::int64_t written_by_view(const Network& network, std::size_t s, const Waiting& waiting,
                             const CoordinateSet& before, const CoordinateSet& after) {
  const Step& view = network.step(s);
  const auto written = [&](const CoordinateSet& from, const CoordinateSet& to) -> std::int64_t {
    if (from == to) return 0;
    if (view.info().copies) return network.elements(to);
    if (!view.info().cuts()) return 0;
    const bool both =
        from[static_cast<std::size_t>(view.out[0])] && from[static_cast<std::size_t>(view.out[1])];
    return both ? 0 : network.elements(to);
  };
  std::int64_t sum = written(before, after);
  for (std::size_t other = 0; other < network.step_count(); ++other) {
    const CoordinateSet& dims = waiting.dims(other);
    if (dims.any()) sum = saturating_add(sum, written(dims, network.through_view(s, dims)));
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
  bool trim(std::size_t most) {
    if (order.size() <= most) return false;
    std::vector<std::pair<Cost, StepSet>> priced;
    priced.reserve(order.size());
    for (const StepSet set : order) priced.emplace_back(nodes.at(set).cost, set);
    const auto end = priced.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(priced.begin(), end, priced.end());
    std::sort(priced.begin(), end);
    for (auto dropped = end; dropped != priced.end(); ++dropped) nodes.erase(dropped->second);
    order.resize(most);
    for (std::size_t i = 0; i < most; ++i) order[i] = priced[i].second;
    return true;
  }
};

}  // namespace

Cost operator+(const Cost& a, const Cost& b) {
  return {saturating_add(a.macs, b.macs), saturating_add(a.written, b.written)};
}

bool waits_for_equal(const Network& network, std::size_t step, StepSet done) {
  const int equal = network.equal_before(step);
  return equal >= 0 && (done & step_bit(static_cast<std::size_t>(equal))) == 0;
}

StepSet executed_by(const PlanMove& move) {
  StepSet steps = move.reduces | move.folded | move.offline;
  if (move.kind == MoveKind::kView || move.kind == MoveKind::kContraction)
    steps |= step_bit(move.step);
  return steps;
}

std::vector<PricedMove> moves_from(const Network& network, StepSet done, const CoordinateSet& data,
                                   bool equal_in_order) {
  std::vector<PricedMove> moves;
  const Waiting waiting(network, done);
  const CoordinateSet closed = network.closed(done);
  for (std::size_t s = 0; s < network.step_count(); ++s) {
    if ((done & step_bit(s)) != 0) continue;
    if (network.is_contraction(s)) {
      if (equal_in_order && waits_for_equal(network, s, done)) continue;
      if ((waiting.dims(s) & closed).any()) continue;
      const CoordinateSet all = data | waiting.dims(s);
      const StepSet reduces = network.reduces_in(waiting.ready_reduces_without(s), all);
      const CoordinateSet left = all & ~network.summed_dims(reduces);
      moves.push_back({{MoveKind::kContraction, s, reduces},
                       {network.elements(all), network.elements(left)},
                       left});
    } else if (network.view_ready(s, done)) {
      const CoordinateSet after = network.after_view(s, done, data);
      moves.push_back(
          {{MoveKind::kView, s, 0}, {0, written_by_view(network, s, waiting, data, after)}, after});
    }
  }
  const StepSet ready = waiting.ready_reduces();
  if (const StepSet sums = network.reduces_in(ready, data); sums != 0) {
    const CoordinateSet left = data & ~network.summed_dims(sums);
    moves.push_back(
        {{MoveKind::kSum, 0, sums}, {network.elements(data), network.elements(left)}, left});
  }
  if (const StepSet scales = ready & ~network.reduces_in(ready, data); scales != 0) {
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
  std::size_t priced_moves = 0;
  InterruptPoll poll(64);
  for (Layer& layer : layers) {
    result.exact = !layer.trim(priced_moves < kMaxMoves ? kMaxSets : kFewSets) && result.exact;
    for (const StepSet set : layer.order) {
      poll();
      const Node node = layer.nodes.at(set);
      const std::vector<PricedMove> moves = moves_from(network, set, node.data, true);
      priced_moves += moves.size();
      for (const PricedMove& priced : moves) {
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
