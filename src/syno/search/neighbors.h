// Neighbors: which operators of a set one move reaches from an operator.
//
// A move changes, adds, removes or replaces one step, and completes the operator again: the other operator shares all steps
// but those that the move and the completion touch. So the distance of two operators counts the steps that only one of
// them has, twice, and those that both have but connect in other ways, once. The space is canonical, so this distance
// is one between operators and not between the ways to write them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "syno/search/steps.h"

namespace syno {

/// About the greatest distance of operators that differ by one move: the step that is changed, and those that are connected
/// to it. Results of operators that are farther apart are hardly correlated.
inline constexpr std::int64_t kMoveReach = 12;

struct Neighbor {
  std::uint32_t op = 0;
  std::uint32_t distance = 0;
};

/// Remembers what it has computed, for all methods and threads that share it.
class Neighbors {
 public:
  explicit Neighbors(const std::vector<LabeledSteps>& operators);

  std::size_t size() const { return begin_.size() - 1; }
  std::uint32_t distance(std::uint32_t a, std::uint32_t b) const;
  /// The `count` nearest operators, and all others at the distance of the last of them, by distance and then number.
  const std::vector<Neighbor>& nearest(std::uint32_t op, std::size_t count) const;

 private:
  using Labels = std::span<const std::uint32_t>;

  Labels labels(std::uint32_t op) const {
    return {labels_.data() + begin_[op], labels_.data() + begin_[op + 1]};
  }

  /// The labels of each operator without and with context, as small numbers in ascending order.
  std::vector<std::uint32_t> labels_;
  std::vector<std::size_t> begin_;
  mutable std::mutex mutex_;
  /// By operator and count. The lists stay where they are.
  mutable std::map<std::pair<std::uint32_t, std::size_t>, std::vector<Neighbor>> found_;
};

}  // namespace syno
