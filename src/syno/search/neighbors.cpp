#include "syno/search/neighbors.h"

#include <algorithm>
#include <unordered_map>

namespace syno {
namespace {

// How many items only one of two sorted lists has.
std::uint32_t difference(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  std::size_t common = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    common += static_cast<std::size_t>(a[i] == b[j]);
    const bool first = a[i] <= b[j];
    j += static_cast<std::size_t>(b[j] <= a[i]);
    i += static_cast<std::size_t>(first);
  }
  return static_cast<std::uint32_t>(a.size() + b.size() - 2 * common);
}

}  // namespace

Neighbors::Neighbors(const std::vector<LabeledSteps>& operators) : begin_{0} {
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  const auto number = [&](std::uint64_t label) {
    return numbers.try_emplace(label, static_cast<std::uint32_t>(numbers.size())).first->second;
  };
  for (const LabeledSteps& steps : operators) {
    for (const LabeledStep& step : steps) {
      labels_.push_back(number(step.label));
      labels_.push_back(number(step.in_context));
    }
    std::sort(labels_.begin() + static_cast<std::ptrdiff_t>(begin_.back()), labels_.end());
    begin_.push_back(labels_.size());
  }
}

std::uint32_t Neighbors::distance(std::uint32_t a, std::uint32_t b) const {
  return difference(labels(a), labels(b));
}

const std::vector<Neighbor>& Neighbors::nearest(std::uint32_t op, std::size_t count) const {
  const std::pair key(op, count);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = found_.find(key); found != found_.end()) return found->second;
  }
  std::vector<std::vector<Neighbor>> by_distance;
  for (std::uint32_t other = 0; other < size(); ++other) {
    if (other == op) continue;
    const std::uint32_t far = distance(op, other);
    if (far >= by_distance.size()) by_distance.resize(far + 1);
    by_distance[far].push_back({other, far});
  }
  std::vector<Neighbor> list;
  for (const std::vector<Neighbor>& at : by_distance) {
    if (list.size() >= count) break;
    list.insert(list.end(), at.begin(), at.end());
  }
  const std::scoped_lock lock(mutex_);
  return found_.try_emplace(key, std::move(list)).first->second;
}

}  // namespace syno
