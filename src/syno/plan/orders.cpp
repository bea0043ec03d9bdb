#include "syno/plan/orders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/mix.h"

namespace syno {
namespace {

// Histories of the sets of one size, and weights that are ready at once, that are followed.
constexpr std::size_t kMaxHistories = 40'000;
constexpr std::size_t kMaxFolded = 6;
// Weights of the same dimensions that are multiplied in every order; of more, only in that of their steps.
constexpr std::size_t kMaxEqual = 4;
// Going on from a history by a move takes as long as so many comparisons.
constexpr std::size_t kMoveWork = 32;
constexpr std::size_t kFewHistories = 400;
constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

// Whether the view `s` only re-indexes the tensors that it touches, or makes them smaller.
bool only_reindexes(const Network& network, std::size_t s, StepSet done,
                    const CoordinateSet& data) {
  const Step& view = network.step(s);
  if (view.info().copies) return false;
  if (!view.info().cuts()) return true;
  const auto both_or_none = [&](const CoordinateSet& dims) {
    return dims[static_cast<std::size_t>(view.out[0])] ==
           dims[static_cast<std::size_t>(view.out[1])];
  };
  if (!both_or_none(data)) return false;
  if (data[static_cast<std::size_t>(view.out[0])]) return true;
  for (std::size_t other = 0; other < network.step_count(); ++other) {
    if (network.is_contraction(other) && (done & step_bit(other)) == 0 &&
        !both_or_none(network.weight_dims(network.weight_of(other), done)))
      return false;
  }
  return true;
}

std::uint64_t hash_of(const CoordinateSet& dims) {
  static const CoordinateSet kLow(~0ULL);
  std::uint64_t hash = 0;
  for (std::size_t from = 0; from < kMaxPlanCoordinates; from += 64)
    hash = mix_words(hash, ((dims >> from) & kLow).to_ullong());
  return hash;
}

// The hash of a history that goes on with `move` on data of dimensions `data`.
std::uint64_t after(std::uint64_t computed, const PlanMove& move, const CoordinateSet& data) {
  if (move.kind == MoveKind::kView) return computed;
  const StepSet steps = move.kind == MoveKind::kContraction ? move.folded | step_bit(move.step) : 0;
  computed = mix_words(computed, static_cast<std::uint64_t>(move.kind) + 1);
  computed = mix_words(computed, steps);
  computed = mix_words(computed, move.reduces);
  computed = mix_words(computed, move.offline);
  return mix_words(computed, hash_of(data));
}

// Moves that multiply several weights into the data at once, or a weight that is summed beforehand.
void add_folded(const Network& network, StepSet done, const CoordinateSet& data,
                bool equal_in_order, std::vector<PricedMove>& moves) {
  std::vector<std::size_t> ready;
  // Of the weights that wait: of those that are ready, and of all others together.
  std::array<CoordinateSet, kMaxFolded> dims_of;
  CoordinateSet others;
  StepSet open = 0;
  const CoordinateSet closed = network.closed(done);
  for (std::size_t s = 0; s < network.step_count(); ++s) {
    if ((done & step_bit(s)) != 0) continue;
    if (network.is_reduce(s) && network.is_open(s, done)) open |= step_bit(s);
    if (!network.is_contraction(s)) continue;
    const CoordinateSet waits = network.weight_dims(network.weight_of(s), done);
    if (ready.size() < kMaxFolded && (waits & closed).none()) {
      dims_of[ready.size()] = waits;
      ready.push_back(s);
    } else {
      others |= waits;
    }
  }
  for (std::size_t subset = 1; subset < (std::size_t{1} << ready.size()); ++subset) {
    PlanMove move{.kind = MoveKind::kContraction};
    CoordinateSet dims;
    CoordinateSet held = others;
    bool first = true;
    bool in_order = true;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if ((subset >> i & 1) == 0) {
        held |= dims_of[i];
        continue;
      }
      const StepSet chosen = first ? 0 : move.folded | step_bit(move.step);
      in_order = in_order && !waits_for_equal(network, ready[i], done | chosen);
      dims |= dims_of[i];
      if (first) {
        move.step = ready[i];
      } else {
        move.folded |= step_bit(ready[i]);
      }
      first = false;
    }
    if (equal_in_order && !in_order) continue;
    const StepSet sums = open & ~network.reduces_in(open, held);
    move.offline = network.reduces_in(sums, dims & ~data);
    if (move.folded == 0 && move.offline == 0) continue;
    dims &= ~network.summed_dims(move.offline);
    const CoordinateSet all = data | dims;
    move.reduces = network.reduces_in(sums & ~move.offline, all);
    const CoordinateSet left = all & ~network.summed_dims(move.reduces);
    moves.push_back({move, {network.elements(all), network.elements(left)}, left});
  }
}

struct History {
  Cost cost;
  /// Weights that were folded into others.
  int folded = 0;
  std::uint64_t computed = 0;
  CoordinateSet data;
  StepSet previous = 0;
  std::size_t rank = 0;
  PlanMove move;

  auto price() const { return std::tuple(cost, folded); }
};

// Sets of equally many executed steps, in the order in which they were found, with their cheapest histories.
struct Layer {
  std::vector<StepSet> order;
  std::unordered_map<StepSet, std::vector<History>> histories;

  /// Returns how many histories it compared.
  std::size_t offer(StepSet set, const History& history, std::size_t limit) {
    const auto [place, inserted] = histories.try_emplace(set);
    if (inserted) order.push_back(set);
    std::vector<History>& known = place->second;
    // Where all that are kept cost no more, it would be dropped at once.
    if (known.size() == limit && !(history.price() < known.back().price())) return 1;
    const std::size_t compared = known.size() + 1;
    const auto same = std::find_if(known.begin(), known.end(), [&](const History& other) {
      return other.computed == history.computed;
    });
    if (same != known.end()) {
      if (!(history.price() < same->price())) return compared;
      known.erase(same);
    }
    const auto behind =
        std::upper_bound(known.begin(), known.end(), history,
                         [](const History& a, const History& b) { return a.price() < b.price(); });
    known.insert(behind, history);
    if (known.size() > limit) known.pop_back();
    return compared;
  }

  bool trim(std::size_t most) {
    if (order.size() <= most) return false;
    // Among equals, the one found first.
    std::vector<std::tuple<Cost, int, std::size_t>> priced;
    priced.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const History& best = histories.at(order[i]).front();
      priced.emplace_back(best.cost, best.folded, i);
    }
    const auto end = priced.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(priced.begin(), end, priced.end());
    std::sort(priced.begin(), end);
    std::vector<StepSet> kept;
    for (auto place = priced.begin(); place != end; ++place)
      kept.push_back(order[std::get<2>(*place)]);
    for (auto dropped = end; dropped != priced.end(); ++dropped)
      histories.erase(order[std::get<2>(*dropped)]);
    order = std::move(kept);
    return true;
  }
};

[[noreturn]] void refuse(const Network& network, const OrdersOptions& options) {
  throw Complaint("cannot enumerate " + std::to_string(options.limit) +
                  " plans of an operator of " + std::to_string(network.step_count()) + " steps")
      .expected("fewer orders of its steps than are compared in about ten seconds", "more")
      .hint("request fewer plans, or only the cheapest one")
      .error();
}

}  // namespace

std::vector<PricedMove> choices_from(const Network& network, StepSet done,
                                     const CoordinateSet& data, bool fold_weights) {
  const bool equal_in_order = network.most_equal() > kMaxEqual;
  std::vector<PricedMove> moves = moves_from(network, done, data, equal_in_order);
  for (PricedMove& priced : moves) {
    if (priced.move.kind == MoveKind::kView &&
        only_reindexes(network, priced.move.step, done, data))
      return {priced};
  }
  if (fold_weights) add_folded(network, done, data, equal_in_order, moves);
  return moves;
}

std::vector<Order> cheapest_orders(const Network& network, const OrdersOptions& options,
                                   OrdersWork& work) {
  const StepSet start = network.nothing_to_do();
  const StepSet goal = network.all_steps();
  bool exact = true;
  std::vector<Layer> layers(kMaxPlanSteps + 1);
  const auto layer_of = [&](StepSet set) -> Layer& {
    return layers[static_cast<std::size_t>(std::popcount(set))];
  };
  History first;
  first.data = network.input_dims();
  layer_of(start).offer(start, first, options.limit);
  InterruptPoll poll(64);
  for (Layer& layer : layers) {
    const bool much = work.units > OrdersWork::kMuch;
    exact = !layer.trim(std::max<std::size_t>(
                (much ? kFewHistories : kMaxHistories) / options.limit, much ? 10 : 100)) &&
            exact;
    for (const StepSet set : layer.order) {
      if (set == goal) continue;
      const std::vector<History>& known = layer.histories.at(set);
      // What can follow, and the data, depend on the set alone.
      const std::vector<PricedMove> moves =
          choices_from(network, set, known.front().data, options.fold_weights);
      for (std::size_t rank = 0; rank < known.size(); ++rank) {
        poll();
        if (work.units > OrdersWork::kMost) refuse(network, options);
        for (const PricedMove& priced : moves) {
          const PlanMove& move = priced.move;
          const Cost cost = known[rank].cost + priced.cost;
          if (cost.macs == kSaturated) continue;
          const StepSet next = set | executed_by(move);
          work.units += kMoveWork +
                        layer_of(next).offer(next,
                                             {cost, known[rank].folded + std::popcount(move.folded),
                                              after(known[rank].computed, move, known[rank].data),
                                              priced.data, set, rank, move},
                                             options.limit);
        }
      }
    }
  }
  std::vector<Order> orders;
  const auto found = layer_of(goal).histories.find(goal);
  if (found == layer_of(goal).histories.end()) return orders;
  for (const History& last : found->second) {
    Order order;
    order.cost = last.cost;
    order.exact = exact;
    const History* at = &last;
    for (StepSet set = goal; set != start;) {
      order.moves.push_back(at->move);
      set = at->previous;
      at = &layer_of(set).histories.at(set)[at->rank];
    }
    std::reverse(order.moves.begin(), order.moves.end());
    orders.push_back(std::move(order));
  }
  return orders;
}

std::uint64_t computation(const Network& network, const Order& order) {
  StepSet done = network.nothing_to_do();
  CoordinateSet data = network.input_dims();
  std::uint64_t computed = 0;
  // Re-indexing views may stand later in `order`; the data is compared as if they did not.
  const auto settle = [&](StepSet after_set, CoordinateSet dims) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t s = 0; s < network.step_count(); ++s) {
        if ((after_set & step_bit(s)) != 0 || !network.view_ready(s, after_set) ||
            !only_reindexes(network, s, after_set, dims))
          continue;
        dims = network.after_view(s, after_set, dims);
        after_set |= step_bit(s);
        changed = true;
      }
    }
    return dims;
  };
  for (const PlanMove& move : order.moves) {
    computed = after(computed, move, settle(done, data));
    if (move.kind == MoveKind::kView) {
      data = network.after_view(move.step, done, data);
    } else if (move.kind == MoveKind::kContraction) {
      for (StepSet left = move.folded | step_bit(move.step); left != 0; left &= left - 1)
        data |= network.weight_dims(
            network.weight_of(static_cast<std::size_t>(std::countr_zero(left))), done);
      data &= ~network.summed_dims(move.offline);
    }
    data &= ~network.summed_dims(move.reduces);
    done |= executed_by(move);
  }
  return computed;
}

}  // namespace syno
