#include "syno/space/macs_bound.h"

#include <algorithm>
#include <cmath>

namespace syno {
namespace {

// Doubles are rounded some hundred times on the way.
constexpr double kMargin = 1e-9;
// Sizes that are tried for the least one of given powers.
constexpr double kMostSizes = 100'000;
// Slots whose subsets are looked at.
constexpr std::size_t kMostSlots = 6;

}  // namespace

MacsBound::MacsBound(const Specification& spec, const SizeSpace& sizes)
    : spec_(spec),
      sizes_(sizes),
      limit_(static_cast<double>(spec.limits().max_macs)),
      extents_(spec.bindings()),
      partial_(extents_),
      loss_(partial_.lanes(), 1.0) {
  for (const Dimension& dim : spec.input()) {
    for (std::size_t v = 0; v < spec.variables()->count(); ++v)
      input_powers_[v] = static_cast<std::int16_t>(input_powers_[v] + dim.size.power(v));
  }
}

void MacsBound::begin(const Graph& graph) {
  if (extents_.full()) extents_.clear();
  usable_ = partial_.read(graph);
}

bool MacsBound::rejects(const State& child, const Step& last, int steps) {
  if (child.weight_count() == 0 || !usable_) return false;
  const bool pushed = partial_.push(last);
  const bool rejected = pushed && least_macs(child, steps) * (1 - kMargin) > limit_;
  partial_.pop();
  return rejected;
}

double MacsBound::least_macs(const State& state, int steps) {
  if (!usable_) return 0;
  const std::vector<double>& each = bound(state, steps);
  const FitMask fit = certain(state);
  double sum = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    if (fit >> b & 1) sum += each[b] * static_cast<double>(spec_.multiplicities()[b]);
  }
  return sum;
}

double MacsBound::least_macs(const State& state, int steps, std::size_t binding) {
  if (!usable_ || (certain(state) >> binding & 1) == 0) return 0;
  return bound(state, steps)[binding];
}

bool MacsBound::bring_in_more(const State& state, std::size_t variable) const {
  const Limits& limits = spec_.limits();
  const bool steps = (state.only_reductions() && state.reduction_count() < limits.max_reductions) ||
                     state.count(Primitive::kStride) < limits.max_strides;
  return steps && state.left[variable] > 0;
}

std::uint32_t MacsBound::complete_variables(const State& state) const {
  std::uint32_t complete = 0;
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
    if (!spec_.variable(v).primary || bring_in_more(state, v)) continue;
    int power = 0;
    for (std::size_t i = 0; i < state.size; ++i) power += sizes_.size(state.slots[i].size).power(v);
    if (power == input_powers_[v]) complete |= std::uint32_t{1} << v;
  }
  return complete;
}

bool MacsBound::stays_whole(const State& state, const Slot& slot, int steps) const {
  if (steps == 0) return true;
  const Limits& limits = spec_.limits();
  if (slot.passed) return true;
  if (limits.max_repeat > 1) return false;
  if (steps > 1 && state.count(Primitive::kMerge) < limits.max_merges) return false;
  const Size& size = sizes_.size(slot.size);
  if (state.weight_count() < limits.max_weights) {
    bool affordable = true;
    for (std::size_t v = 0; v < spec_.variables()->count(); ++v)
      affordable = affordable && (!spec_.variable(v).primary || size.power(v) <= state.left[v]);
    if (affordable) return false;
  }
  // What a Split makes of it is no smaller.
  return state.count(Primitive::kUnfold) >= limits.max_unfolds ||
         !spec_.fit_suffices(state.fit & sizes_.fit_at_most(size, limits.max_window));
}

FitMask MacsBound::certain(const State& state) const {
  if (spec_.limits().min_fit >= 1) return state.fit;
  FitMask certain = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    const FitMask bit = FitMask{1} << b;
    if ((state.fit & bit) != 0 && !spec_.fit_suffices(state.fit & ~bit)) certain |= bit;
  }
  return certain;
}

const std::vector<double>& MacsBound::least(const Powers& powers, std::uint32_t complete,
                                            std::size_t dim) {
  const auto [place, is_new] = least_.try_emplace({powers, complete, dim});
  std::vector<double>& found = place->second;
  if (!is_new) return found;
  // Powers that some coordinate can have. A charge of 1 adds at most 2 to the sum of all powers, taken positive.
  const std::size_t count = spec_.variables()->count();
  std::array<int, kMaxVariables> low{};
  std::array<int, kMaxVariables> high{};
  double tried = 1;
  for (std::size_t v = 0; v < count; ++v) {
    if ((complete >> v & 1) != 0) {
      low[v] = high[v] = int{powers[v]};
    } else if (spec_.variable(v).primary) {
      high[v] = spec_.input()[dim].size.power(v);
    } else {
      high[v] = 2 * spec_.variable(v).budget;
      for (const Dimension& out : spec_.output()) high[v] += std::abs(out.size.power(v));
      low[v] = -high[v];
    }
    tried *= high[v] - low[v] + 1;
  }
  found.assign(partial_.lanes(), tried > kMostSizes ? 1.0 : HUGE_VAL);
  if (tried > kMostSizes) return found;
  const auto visit = [&](auto&& self, std::size_t v, const Size& size) -> void {
    if (size.variable_count() > spec_.limits().max_size_variables) return;
    if (v == count) {
      if (!spec_.legal(size)) return;
      const FitMask fit = spec_.fit(size);
      if (!spec_.fit_suffices(fit)) return;
      for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
        if (fit >> b & 1)
          found[b] = std::min(found[b], static_cast<double>(*size.extent(spec_.bindings()[b])));
      }
      return;
    }
    for (int power = low[v]; power <= high[v]; ++power)
      self(self, v + 1, power == 0 ? size : size * Size::variable(v, power));
  };
  visit(visit, 0, Size());
  return found;
}

// The largest factor that a Merge can take from what arrives at some of the coordinates that stay.
void MacsBound::find_loss(const State& state, std::uint32_t complete, CoordinateMask stays,
                          int steps) {
  std::fill(loss_.begin(), loss_.end(), 1.0);
  const Limits& limits = spec_.limits();
  const std::int64_t merges = limits.max_merges - state.count(Primitive::kMerge);
  if (merges <= 0 || steps < 2) return;
  std::vector<SizeId> slots;
  for (std::size_t i = 0; i < state.size; ++i) {
    if ((stays >> state.slots[i].id & 1) != 0 && !state.slots[i].passed)
      slots.push_back(state.slots[i].size);
  }
  if (merges > 1 || slots.size() > kMostSlots) {
    std::fill(loss_.begin(), loss_.end(), HUGE_VAL);
    return;
  }
  std::sort(slots.begin(), slots.end());
  const auto [known, is_new] = losses_.try_emplace({slots, complete, steps == 2});
  if (!is_new) {
    loss_ = known->second;
    return;
  }
  for (std::size_t subset = 1; subset < (std::size_t{1} << slots.size()); ++subset) {
    Powers powers{};
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if ((subset >> i & 1) == 0) continue;
      const Size& size = sizes_.size(slots[i]);
      for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
        if (complete >> v & 1) powers[v] = static_cast<std::int8_t>(powers[v] + size.power(v));
      }
    }
    for (std::size_t d = 0; d < spec_.input().size(); ++d) {
      const Size& dim = spec_.input()[d].size;
      bool has_all = true;
      for (std::size_t v = 0; v < spec_.variables()->count(); ++v)
        has_all = has_all && (!(complete >> v & 1) || dim.power(v) >= powers[v]);
      if (!has_all) continue;
      const std::vector<double>& smallest = least(powers, complete, d);
      for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
        double arrives = 1;
        for (std::size_t i = 0; i < slots.size(); ++i) {
          if (subset >> i & 1) arrives *= static_cast<double>(sizes_.value(slots[i], b));
        }
        double left = smallest[b];
        if (steps == 2) {
          const auto value = dim.extent(spec_.bindings()[b]);
          left = value ? static_cast<double>(*value) : 1.0;
        }
        loss_[b] = std::max(loss_[b], arrives / left);
      }
    }
  }
  known->second = loss_;
}

const std::vector<double>& MacsBound::bound(const State& state, int steps) {
  const std::uint32_t complete = complete_variables(state);
  CoordinateMask stays = 0;
  for (std::size_t i = 0; i < state.size; ++i) {
    const Slot& slot = state.slots[i];
    const Size& size = sizes_.size(slot.size);
    bool keeps = false;
    for (std::size_t v = 0; v < spec_.variables()->count(); ++v)
      keeps = keeps || ((complete >> v & 1) != 0 && size.power(v) > 0);
    if (keeps || stays_whole(state, slot, steps)) stays |= coordinate_bit(slot.id);
  }
  find_loss(state, complete, stays, steps);
  return partial_.bound(stays, loss_.data());
}

}  // namespace syno
