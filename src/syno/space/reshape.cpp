#include "syno/space/reshape.h"

#include <algorithm>
#include <bit>

namespace syno {
namespace {

std::size_t lowest(std::uint32_t subset) {
  return static_cast<std::size_t>(std::countr_zero(subset));
}

int count(std::uint32_t subset) {
  return std::popcount(subset);
}

}  // namespace

void Reshape::Powers::add(const Powers& other) {
  constexpr std::uint64_t kHigh = 0x8080808080808080ULL;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const std::uint64_t a = words[w];
    const std::uint64_t b = other.words[w];
    words[w] = ((a & ~kHigh) + (b & ~kHigh)) ^ ((a ^ b) & kHigh);
  }
}

Reshape::Powers Reshape::powers_of(const Size& size) {
  Powers powers;
  for (std::size_t v = 0; v < kMaxVariables; ++v) {
    const auto byte = static_cast<std::uint8_t>(static_cast<std::int8_t>(size.power(v)));
    powers.words[v / 8] |= static_cast<std::uint64_t>(byte) << (8 * (v % 8));
  }
  return powers;
}

const Reshape::Powers& Reshape::powers_of(SizeId size) {
  for (std::size_t next = powers_.size(); next <= static_cast<std::size_t>(size); ++next)
    powers_.push_back(powers_of(sizes_.size(static_cast<SizeId>(next))));
  return powers_[static_cast<std::size_t>(size)];
}

Reshape::Reshape(const SizeSpace& sizes, const Specification& spec,
                 const std::vector<SizeId>& target)
    : sizes_(sizes) {
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    if (spec.variable(v).primary) primaries_.push_back(v);
  }
  for (const SizeId size : target) target_.push_back(powers_of(sizes.size(size)));
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
    Powers product = products_[subset & (subset - 1)];
    product.add(powers_of(inputs[lowest(subset)].size));
    products_[subset] = product;
  }
  return choose(0, all, 0, 0, 0);
}

// Whether something is left over once the targets are taken out; primaries never stand in a denominator.
bool Reshape::has_more(Subset subset, const Powers& wanted) const {
  for (const std::size_t v : primaries_) {
    if (products_[subset].at(v) < wanted.at(v)) return false;
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
  const Powers wanted = target_[target];
  for (Subset subset = free; subset != 0; subset = (subset - 1) & free) {
    const bool whole = products_[subset] == wanted;
    if (!whole && (merges >= limits_.merges || !has_more(subset, wanted))) continue;
    if (splits + count(subset) - 1 > limits_.splits) continue;
    if (choose(target + 1, free & ~subset, splits + count(subset) - 1, merges + !whole,
               pieces + !whole))
      return true;
  }
  if (merges >= limits_.merges) return false;
  // This target and a later one from one group.
  for (std::size_t other = target + 1; other < target_.size(); ++other) {
    Powers both = wanted;
    both.add(target_[other]);
    for (Subset subset = free; subset != 0; subset = (subset - 1) & free) {
      if (products_[subset] != both) continue;
      std::swap(target_[other], target_[target + 1]);
      const bool found =
          choose(target + 2, free & ~subset, splits + count(subset) - 1, merges + 1, pieces);
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
      const Removal& removal = inputs_[lowest(left)].removal;
      if (removal.contraction && contractions >= (removal.second_contraction ? 2 : 1)) continue;
      if (removal.step && contractions >= (removal.step_after_contraction ? 1 : 0)) {
        ++removals;
      } else {
        ++others;
      }
    }
    // What no window or repeat is left for is joined by Splits into one, which is cut by a Merge or is a window.
    const int excess = std::max(0, removals - limits_.removals);
    removals -= excess;
    others += excess;
    const int cost = splits + merges + removals + contractions + others;
    if (cost <= steps_ && splits + std::max(0, others - 1) <= limits_.splits) return true;
  }
  return false;
}

}  // namespace syno
