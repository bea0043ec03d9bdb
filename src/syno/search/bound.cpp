#include "syno/search/bound.h"

#include <algorithm>
#include <cstdlib>

namespace syno {

CompletionBound::CompletionBound(const Specification& spec, const RuleSet& rules, SizeSpace& sizes,
                                 BoundMode mode)
    : spec_(spec),
      sizes_(sizes),
      mode_(mode),
      restrict_dropped_(rules.is_on("R8")),
      restrict_windows_(rules.is_on("R9")) {
  for (std::size_t d = 0; d < spec.input().size(); ++d) {
    if (spec.passes_input(static_cast<int>(d))) continue;
    target_.push_back(sizes.intern(spec.input()[d].size));
    target_product_ = target_product_ * spec.input()[d].size;
  }
  std::sort(target_.begin(), target_.end());
}

CompletionBound::Kind CompletionBound::kind_of(const Graph& graph, CoordinateId id) const {
  if (graph.is_iterator(id)) return kLeaves;
  switch (graph.producer(id)->primitive) {
    case Primitive::kMerge: return kLeaves;
    case Primitive::kReduce: return graph.share_count(id) > 0 ? kSharedReduction : kBareReduction;
    default: return restrict_dropped_ ? kStays : kLeaves;
  }
}

bool CompletionBound::can_leave(const Coordinate& coordinate) const {
  if (mode_ != BoundMode::kFull) return true;
  switch (coordinate.kind) {
    case kLeaves: return sizes_.droppable(coordinate.size);
    case kBareReduction:
    case kSharedReduction: return sizes_.joinable(coordinate.size);
    case kStays: return false;
  }
  return true;
}

// One contraction is needed, and every coordinate beyond the target's number that no contraction can take away needs a
// Split, an Unfold or an Expand of its own. A Merge makes two that can leave out of one that cannot, at a step as well.
bool CompletionBound::may_complete_with_more(const Graph& graph, int steps) {
  if (mode_ != BoundMode::kFull) return steps > 0;
  int staying = 0;
  for (const CoordinateId id : graph.frontier()) {
    if (graph.is_iterator(id) && spec_.passes_output(graph.coordinate(id).index)) continue;
    staying += !can_leave({sizes_.intern(graph.extent(id)), kind_of(graph, id)});
  }
  return 1 + std::max(0, staying - static_cast<int>(target_.size())) <= steps;
}

bool CompletionBound::may_complete(const Graph& graph, const Ledger& ledger, int steps) {
  if (mode_ == BoundMode::kNone) return steps >= 0;
  const Limits& limits = spec_.limits();
  const auto left = [&](std::int64_t limit, Primitive primitive) {
    return static_cast<std::int8_t>(std::clamp<std::int64_t>(
        limit - ledger.counts[static_cast<std::size_t>(primitive)], 0, 100));
  };
  State state;
  for (const CoordinateId id : graph.frontier()) {
    if (graph.is_iterator(id) && spec_.passes_output(graph.coordinate(id).index)) continue;
    state.frontier.push_back({sizes_.intern(graph.extent(id)),
                              mode_ == BoundMode::kFull ? kind_of(graph, id) : kLeaves});
  }
  std::sort(state.frontier.begin(), state.frontier.end());
  state.weighted = !graph.weights().empty();
  if (mode_ == BoundMode::kFull) {
    state.splits = left(limits.max_splits, Primitive::kSplit);
    state.merges = left(limits.max_merges, Primitive::kMerge);
    state.unfolds = left(limits.max_unfolds, Primitive::kUnfold);
    state.strides = left(limits.max_strides, Primitive::kStride);
    state.weights = left(limits.max_weights, Primitive::kShare);
    for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
      state.left[v] = static_cast<std::int16_t>(spec_.variable(v).budget - ledger.charges[v]);
    }
  } else {
    state.splits = state.merges = state.unfolds = state.weights = 100;
    state.strides = limits.max_strides > 0 ? 100 : 0;
    state.left.fill(100);
  }
  return feasible(state, steps);
}

Hash128 CompletionBound::key(const State& state) const {
  Hasher hasher("bound");
  for (const Coordinate& c : state.frontier) hasher.add(c.size << 2 | static_cast<int>(c.kind));
  std::uint64_t caps = 0;
  for (const std::int8_t cap :
       {state.splits, state.merges, state.unfolds, state.strides, state.weights}) {
    caps = caps << 8 | static_cast<std::uint8_t>(cap);
  }
  hasher.add(caps << 1 | static_cast<std::uint64_t>(state.weighted));
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v)
    hasher.add(static_cast<int>(state.left[v]));
  return hasher.finish();
}

bool CompletionBound::is_complete(const State& state) const {
  if (!state.weighted || state.frontier.size() != target_.size()) return false;
  Size pooled;
  // The frontier is sorted by size first, and so is the target.
  for (std::size_t i = 0; i < target_.size(); ++i) {
    if (state.frontier[i].size != target_[i]) return false;
    if (state.frontier[i].kind == kBareReduction) pooled = pooled * sizes_.size(target_[i]);
  }
  if (pooled.is_one()) return true;
  FitMask fit = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    if (pooled.extent(spec_.bindings()[b]).value_or(0) <= spec_.limits().max_pooling)
      fit |= FitMask{1} << b;
  }
  return spec_.fit_suffices(fit);
}

// Arithmetic that needs no search. Splits, Merges and Shifts keep the product of the frontier; a Stride multiplies it;
// the others divide it by sizes whose primary powers are not negative.
bool CompletionBound::out_of_reach(const State& state, int steps) const {
  if (!state.weighted && (steps == 0 || state.weights == 0)) return true;
  const int missing = static_cast<int>(target_.size()) - static_cast<int>(state.frontier.size());
  if (missing > std::min<int>(steps, state.merges)) return true;
  Size product;
  for (const Coordinate& c : state.frontier) product = product * sizes_.size(c.size);
  if (state.strides == 0) {
    for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
      if (spec_.variable(v).primary && product.power(v) < target_product_.power(v)) return true;
    }
  }
  // Coordinates larger in number than the target must go: one a step, or several in a contraction.
  if (missing < 0) {
    int droppable = 0;
    for (const Coordinate& c : state.frontier) droppable += can_leave(c);
    const int contractions = std::min<int>(steps, state.weights);
    const int most = (contractions > 0 ? droppable : 0) + (steps - (contractions > 0 ? 1 : 0));
    // A merge makes two more that can be dropped, at the price of a step.
    if (-missing > most + (contractions > 0 ? std::min<int>(steps, state.merges) : 0)) return true;
  }
  return false;
}

bool CompletionBound::feasible(const State& state, int steps) {
  if (is_complete(state)) return true;
  if (steps <= 0 || out_of_reach(state, steps)) return false;
  const Hash128 hash = key(state);
  if (const auto known = known_.find(hash); known != known_.end()) {
    if (steps <= known->second.refuted) return false;
    if (steps >= known->second.proved) return true;
  }
  const bool found = try_contractions(state, steps - 1) || try_windows(state, steps - 1) ||
                     try_splits(state, steps - 1) || try_merges(state, steps - 1) ||
                     try_strides(state, steps - 1) || try_repeats(state, steps - 1);
  Known& known = known_[hash];
  if (found) {
    known.proved =
        std::min<std::int8_t>(known.proved, static_cast<std::int8_t>(std::min(steps, 126)));
  } else {
    known.refuted =
        std::max<std::int8_t>(known.refuted, static_cast<std::int8_t>(std::min(steps, 126)));
  }
  return found;
}

bool CompletionBound::charge_share(Charges& left, const Size& size) const {
  if (mode_ != BoundMode::kFull) return true;
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
    if (!spec_.variable(v).primary || size.power(v) == 0) continue;
    left[v] = static_cast<std::int16_t>(left[v] - std::abs(size.power(v)));
    if (left[v] < 0) return false;
  }
  return true;
}

// A contraction may drop any coordinates that can leave and share any Reduces; Reduces without primaries are shared for
// free, so all of them are.
bool CompletionBound::try_contractions(const State& state, int steps) {
  if (state.weights == 0) return false;
  State base = state;
  base.weighted = true;
  --base.weights;
  std::vector<std::size_t> choices;
  for (std::size_t i = 0; i < base.frontier.size(); ++i) {
    Coordinate& c = base.frontier[i];
    if (c.kind == kStays) continue;
    Charges free = base.left;
    const Charges before = free;
    if (!charge_share(free, sizes_.size(c.size))) continue;
    if (c.kind == kBareReduction && free == before) {
      c.kind = kSharedReduction;
    } else if (c.kind == kBareReduction || can_leave(c)) {
      choices.push_back(i);
    }
  }
  const std::size_t subsets = std::size_t{1} << std::min<std::size_t>(choices.size(), 20);
  for (std::size_t subset = subsets; subset-- > 0;) {
    State next = base;
    bool legal = true;
    bool leaves = false;
    std::vector<bool> gone(next.frontier.size(), false);
    for (std::size_t n = 0; n < choices.size() && legal; ++n) {
      if (!(subset >> n & 1)) continue;
      Coordinate& c = next.frontier[choices[n]];
      legal = charge_share(next.left, sizes_.size(c.size));
      if (c.kind == kBareReduction) {
        c.kind = kSharedReduction;
      } else {
        gone[choices[n]] = true;
        leaves = true;
      }
    }
    if (!legal) continue;
    if (mode_ == BoundMode::kFull && !leaves && !spec_.limits().element_wise_weights) continue;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < next.frontier.size(); ++i) {
      if (!gone[i]) next.frontier[kept++] = next.frontier[i];
    }
    next.frontier.resize(kept);
    std::sort(next.frontier.begin(), next.frontier.end());
    if (feasible(next, steps)) return true;
  }
  return false;
}

bool CompletionBound::try_windows(const State& state, int steps) {
  if (state.unfolds == 0) return false;
  for (std::size_t j = 0; j < state.frontier.size(); ++j) {
    const Coordinate window = state.frontier[j];
    if (j > 0 && state.frontier[j - 1] == window) continue;
    if (!sizes_.is_window(window.size) || (restrict_windows_ && window.kind == kBareReduction))
      continue;
    for (std::size_t i = 0; i < state.frontier.size(); ++i) {
      if (i == j || (i > 0 && i - 1 != j && state.frontier[i - 1] == state.frontier[i])) continue;
      if (!sizes_.slides(state.frontier[i].size, window.size)) continue;
      State next = state;
      --next.unfolds;
      if (mode_ == BoundMode::kFull && restrict_dropped_) next.frontier[i].kind = kStays;
      next.frontier.erase(next.frontier.begin() + static_cast<std::ptrdiff_t>(j));
      std::sort(next.frontier.begin(), next.frontier.end());
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_splits(const State& state, int steps) {
  if (state.splits == 0) return false;
  for (std::size_t i = 0; i + 1 < state.frontier.size(); ++i) {
    for (std::size_t j = i + 1; j < state.frontier.size(); ++j) {
      const SizeId product = sizes_.product(state.frontier[i].size, state.frontier[j].size);
      if (product == kNoSize) continue;
      State next = state;
      --next.splits;
      next.frontier[i] = {product,
                          mode_ == BoundMode::kFull && restrict_dropped_ ? kStays : kLeaves};
      next.frontier.erase(next.frontier.begin() + static_cast<std::ptrdiff_t>(j));
      std::sort(next.frontier.begin(), next.frontier.end());
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_merges(const State& state, int steps) {
  if (state.merges == 0) return false;
  for (std::size_t i = 0; i < state.frontier.size(); ++i) {
    if (i > 0 && state.frontier[i - 1] == state.frontier[i]) continue;
    const SizeId whole = state.frontier[i].size;
    for (std::size_t n = 0; n < sizes_.blocks(whole).size(); ++n) {
      const SizeId block = sizes_.blocks(whole)[n];
      const SizeId quotient = sizes_.quotients(whole)[n];
      State next = state;
      --next.merges;
      if (mode_ == BoundMode::kFull) {
        bool affordable = true;
        for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
          const int charge =
              (std::abs(sizes_.size(quotient).power(v)) + std::abs(sizes_.size(block).power(v)) -
               std::abs(sizes_.size(whole).power(v))) /
              2;
          next.left[v] = static_cast<std::int16_t>(next.left[v] - charge);
          affordable = affordable && (charge == 0 || next.left[v] >= 0);
        }
        if (!affordable) continue;
      }
      next.frontier[i] = {quotient, kLeaves};
      next.frontier.push_back({block, kLeaves});
      std::sort(next.frontier.begin(), next.frontier.end());
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_strides(const State& state, int steps) {
  if (state.strides == 0) return false;
  for (std::size_t i = 0; i < state.frontier.size(); ++i) {
    if (i > 0 && state.frontier[i - 1] == state.frontier[i]) continue;
    for (const SizeId factor : sizes_.universe()) {
      const SizeId product = sizes_.product(state.frontier[i].size, factor);
      if (product == kNoSize) continue;
      State next = state;
      --next.strides;
      if (mode_ == BoundMode::kFull) {
        bool affordable = true;
        for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
          const int charge = std::abs(sizes_.size(factor).power(v));
          next.left[v] = static_cast<std::int16_t>(next.left[v] - charge);
          affordable = affordable && (charge == 0 || next.left[v] >= 0);
        }
        if (!affordable) continue;
      }
      next.frontier[i] = {product,
                          mode_ == BoundMode::kFull && restrict_dropped_ ? kStays : kLeaves};
      std::sort(next.frontier.begin(), next.frontier.end());
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_repeats(const State& state, int steps) {
  if (spec_.limits().max_repeat <= 1) return false;
  for (std::size_t i = 0; i < state.frontier.size(); ++i) {
    if (i > 0 && state.frontier[i - 1] == state.frontier[i]) continue;
    const Size& extent = sizes_.size(state.frontier[i].size);
    if (!spec_.fit_suffices(sizes_.fit_at_most(extent, spec_.limits().max_repeat))) continue;
    State next = state;
    next.frontier.erase(next.frontier.begin() + static_cast<std::ptrdiff_t>(i));
    if (feasible(next, steps)) return true;
  }
  return false;
}

}  // namespace syno
