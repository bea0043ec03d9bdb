#include "syno/search/reshape.h"

#include <algorithm>
#include <bit>

namespace syno {

Reshape::Reshape(const SizeSpace& sizes, const Specification& spec,
                 const std::vector<SizeId>& target)
    : sizes_(sizes), variables_(spec.variables()->count()) {
  for (std::size_t v = 0; v < variables_; ++v) primary_.push_back(spec.variable(v).primary);
  for (const SizeId size : target) {
    Powers& powers = target_.emplace_back();
    for (std::size_t v = 0; v < variables_; ++v)
      powers[v] = static_cast<std::int8_t>(sizes.size(size).power(v));
  }
}

bool Reshape::possible(std::span<const ReshapeInput> inputs, const ReshapeLimits& limits,
                       int steps) {
  if (inputs.size() > kMaxInputs) return true;
  inputs_ = inputs;
  limits_ = limits;
  steps_ = steps;
  const Subset all = (Subset{1} << inputs.size()) - 1;
  products_.resize(all + 1);
  products_[0] = Powers();
  for (Subset subset = 1; subset <= all; ++subset) {
    const Size& size = sizes_.size(inputs[static_cast<std::size_t>(std::countr_zero(subset))].size);
    const Powers& without = products_[subset & (subset - 1)];
    Powers& product = products_[subset];
    for (std::size_t v = 0; v < kMaxVariables; ++v)
      product[v] = static_cast<std::int8_t>(without[v] + size.power(v));
  }
  return choose(0, all, 0, 0, 0);
}

bool Reshape::is_whole(Subset subset, const Powers& wanted) const {
  return products_[subset] == wanted;
}

// Whether something is left over once the targets are taken out; primaries never stand in a denominator.
bool Reshape::has_more(Subset subset, const Powers& wanted) const {
  for (std::size_t v = 0; v < variables_; ++v) {
    if (primary_[v] && products_[subset][v] < wanted[v]) return false;
  }
  return true;
}

// Gives each target from `target` on a group of inputs out of `free`. Two targets share a group only where a Merge takes
// them apart; more than two, or two together with something left over, would take two Merges.
bool Reshape::choose(std::size_t target, Subset free, int splits, int merges, int pieces) {
  if (splits > limits_.splits || merges > limits_.merges || splits + merges > steps_) return false;
  if (target == target_.size()) return finish(free, splits, merges, pieces);
  // With several Merges left anything goes; two targets in one group are rare then, and the search decides.
  if (limits_.merges - merges > 1) return true;
  const Powers& wanted = target_[target];
  for (Subset subset = free; subset != 0; subset = (subset - 1) & free) {
    const int inner = std::popcount(subset) - 1;
    if (is_whole(subset, wanted)) {
      if (choose(target + 1, free & ~subset, splits + inner, merges, pieces)) return true;
    } else if (merges < limits_.merges && has_more(subset, wanted)) {
      if (choose(target + 1, free & ~subset, splits + inner, merges + 1, pieces + 1)) return true;
    }
  }
  if (merges >= limits_.merges) return false;
  // This target and a later one from one group.
  for (std::size_t other = target + 1; other < target_.size(); ++other) {
    Powers both = wanted;
    for (std::size_t v = 0; v < variables_; ++v)
      both[v] = static_cast<std::int8_t>(both[v] + target_[other][v]);
    for (Subset subset = free; subset != 0; subset = (subset - 1) & free) {
      if (!is_whole(subset, both)) continue;
      std::swap(target_[other], target_[target + 1]);
      const bool found = choose(target + 2, free & ~subset, splits + std::popcount(subset) - 1,
                                merges + 1, pieces);
      std::swap(target_[other], target_[target + 1]);
      if (found) return true;
    }
  }
  return false;
}

// What no target takes is removed: for nothing by contractions, by steps of its own, or after being joined or cut.
bool Reshape::finish(Subset rest, int splits, int merges, int pieces) const {
  for (int contractions = limits_.unweighted ? 1 : 0; contractions <= limits_.contractions;
       ++contractions) {
    int removals = contractions > 0 ? 0 : pieces;
    int others = 0;
    for (Subset left = rest; left != 0; left &= left - 1) {
      const Removal& removal = inputs_[static_cast<std::size_t>(std::countr_zero(left))].removal;
      if (removal.contraction && contractions >= (removal.second_contraction ? 2 : 1)) continue;
      if (removal.step && contractions >= (removal.step_after_contraction ? 1 : 0)) {
        ++removals;
      } else {
        ++others;
      }
    }
    // Joined by Splits into one, which is cut by a Merge or is a window.
    const int cost = splits + merges + removals + contractions + others;
    if (cost <= steps_ && removals <= limits_.removals &&
        splits + std::max(0, others - 1) <= limits_.splits)
      return true;
  }
  return false;
}

}  // namespace syno
