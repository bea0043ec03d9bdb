#include "syno/trials/shape_distance.h"

#include <algorithm>
#include <bit>

#include "syno/support/hash.h"

namespace syno {
namespace {

constexpr int kUnknown = -1;

std::vector<SizeId> target_sizes(StateSpace& space) {
  const Specification& spec = space.specification();
  std::vector<SizeId> sizes;
  for (std::size_t d = 0; d < spec.input().size(); ++d) {
    if (!spec.passes_input(static_cast<int>(d)))
      sizes.push_back(space.sizes().intern(spec.input()[d].size));
  }
  return sizes;
}

}  // namespace

ShapeDistance::ShapeDistance(StateSpace& space, DistanceForm form) : space_(space), form_(form) {
  const std::vector<SizeId> sizes = target_sizes(space);
  target_count_ = sizes.size();
  if (target_count_ <= kMost) target_ = products(sizes);
}

std::vector<SizeId> ShapeDistance::products(const std::vector<SizeId>& sizes) {
  std::vector<SizeId> all(std::size_t{1} << sizes.size());
  all[0] = space_.sizes().intern(Size());
  for (std::size_t subset = 1; subset < all.size(); ++subset) {
    const auto lowest = static_cast<std::size_t>(std::countr_zero(subset));
    all[subset] = space_.sizes().times(all[subset & (subset - 1)], sizes[lowest]);
  }
  return all;
}

// Steps inside a group. Steps only remove elements, in coordinates that divide what is there.
int ShapeDistance::group(Subset from, Subset to) {
  const int reshapes = std::popcount(from) + std::popcount(to) - 2;
  if (frontier_[from] == target_[to]) return reshapes;
  const SizeId removed = space_.sizes().over(frontier_[from], target_[to]);
  const Specification& spec = space_.specification();
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    if (spec.variable(v).primary && space_.sizes().size(removed).power(v) < 0) return kUnreachable;
  }
  if (!spec.fit_suffices(space_.sizes().fit(removed))) return kUnreachable;
  return reshapes + (form_ == DistanceForm::kEachGroup ? 1 : 0);
}

int ShapeDistance::least(Subset free, Subset wanted) {
  // What no group takes is removed.
  if (wanted == 0) return form_ == DistanceForm::kEachGroup ? std::popcount(free) : 0;
  int& known = known_[static_cast<std::size_t>(free) * target_.size() + wanted];
  if (known != kUnknown) return known;
  int best = kUnreachable;
  // Each group with the first coordinate of the input that has none yet.
  const Subset first = wanted & (~wanted + 1);
  const Subset others = wanted & ~first;
  for (Subset more = others;; more = (more - 1) & others) {
    for (Subset from = free; from != 0; from = (from - 1) & free) {
      const int steps = group(from, first | more);
      if (steps >= best) continue;
      best = std::min(best, steps + least(free & ~from, others & ~more));
    }
    if (more == 0) break;
  }
  return known_[static_cast<std::size_t>(free) * target_.size() + wanted] = best;
}

int ShapeDistance::operator()(const State& state) {
  std::vector<SizeId> sizes;
  for (std::size_t place = 0; place < state.size; ++place) {
    if (!state.slots[place].passed) sizes.push_back(state.slots[place].size);
  }
  return of(std::move(sizes));
}

int ShapeDistance::of(std::vector<SizeId> frontier) {
  if (frontier.size() > kMost || target_count_ > kMost) return 0;
  std::sort(frontier.begin(), frontier.end());
  Hasher hasher("frontier");
  for (const SizeId size : frontier) hasher.add(static_cast<int>(size));
  const std::uint64_t key = hasher.finish().low;
  const auto place = memo_.find(key);
  if (place != memo_.end()) return place->second;

  frontier_ = products(frontier);
  known_.assign(frontier_.size() * target_.size(), kUnknown);
  const auto all = static_cast<Subset>(frontier_.size() - 1);
  const auto wanted = static_cast<Subset>(target_.size() - 1);
  int distance = least(all, wanted);
  // One contraction for all that is removed.
  if (form_ == DistanceForm::kOnce && distance < kUnreachable && frontier_[all] != target_[wanted])
    ++distance;
  return memo_[key] = std::min(distance, kUnreachable);
}

}  // namespace syno
