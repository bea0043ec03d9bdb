#include "syno/search/neighbors.h"

#include <algorithm>

namespace syno {
namespace {

// How many items only one of two sorted lists has.
std::uint32_t difference(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::uint32_t count = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == b[j]) {
      ++i;
      ++j;
    } else {
      ++count;
      if (a[i] < b[j])
        ++i;
      else
        ++j;
    }
  }
  return count + static_cast<std::uint32_t>(a.size() - i + b.size() - j);
}

}  // namespace

Neighbors::Neighbors(const std::vector<LabeledSteps>& operators) {
  for (const LabeledSteps& steps : operators) {
    std::vector<std::uint64_t> plain;
    std::vector<std::uint64_t> in_context;
    for (const LabeledStep& step : steps) {
      plain.push_back(step.label);
      in_context.push_back(step.in_context);
    }
    std::sort(plain.begin(), plain.end());
    std::sort(in_context.begin(), in_context.end());
    plain_.push_back(std::move(plain));
    in_context_.push_back(std::move(in_context));
  }
}

std::uint32_t Neighbors::distance(std::uint32_t a, std::uint32_t b) const {
  return difference(plain_[a], plain_[b]) + difference(in_context_[a], in_context_[b]);
}

std::vector<Neighbor> Neighbors::sorted(std::uint32_t op) const {
  std::vector<Neighbor> all;
  all.reserve(size());
  for (std::uint32_t other = 0; other < size(); ++other)
    if (other != op) all.push_back({other, distance(op, other)});
  std::sort(all.begin(), all.end(), [](const Neighbor& a, const Neighbor& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.op < b.op;
  });
  return all;
}

const std::vector<Neighbor>& Neighbors::nearest(std::uint32_t op, std::size_t count) const {
  const std::pair key(op, count);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = found_.find(key); found != found_.end()) return found->second;
  }
  std::vector<Neighbor> list = sorted(op);
  std::size_t end = std::min(count, list.size());
  while (end > 0 && end < list.size() && list[end].distance == list[end - 1].distance) ++end;
  list.resize(end);
  list.shrink_to_fit();
  const std::scoped_lock lock(mutex_);
  return found_.try_emplace(key, std::move(list)).first->second;
}

}  // namespace syno
