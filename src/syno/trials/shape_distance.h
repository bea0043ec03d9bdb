// The paper's shape distance (section 7.1 and appendix A), in our words: how many steps are needed at least to bring the
// frontier to the sizes of the input. A figure to reproduce the paper's ablation with, not a test to prune by: it is no
// lower bound. An enumeration prunes by the completion bound (bound.h).
//
// The frontier and the input are divided into reshape groups, inside which coordinates are joined and cut:
//
//     [C_in, s^-1*H, s*W, k]  ->  [C_in, H, W]      {C_in} <- {C_in}   {H, W} <- {s^-1*H, s*W}   {} <- {k}
//
// A group with n coordinates of the frontier and m of the input takes n - 1 Splits and m - 1 Merges. Where their products
// differ, the quotient, a size that a coordinate may have, has to be removed, which is a step more. The distance is the least sum over all ways to form groups.
// Section 7.1 charges that step to each group. Theorem A.2 charges it once, as one contraction may remove everything.
// Reductions come before: a graph that will get more of them has no distance yet.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "syno/space/state.h"

namespace syno {

enum class DistanceForm : std::uint8_t {
  kEachGroup,  ///< section 7.1
  kOnce,       ///< theorem A.2
};

class ShapeDistance {
 public:
  /// What no number of steps reaches.
  static constexpr int kUnreachable = 1000;

  /// Keeps a reference to `space`.
  ShapeDistance(StateSpace& space, DistanceForm form);

  /// Steps from a frontier to the input. 0 where there are more coordinates than the groups of which can be listed.
  int operator()(const State& state);
  /// The same for sizes.
  int of(std::vector<SizeId> frontier);

 private:
  static constexpr std::size_t kMost = 12;
  using Subset = std::uint32_t;

  /// The products of all subsets.
  std::vector<SizeId> products(const std::vector<SizeId>& sizes);
  int group(Subset from, Subset to);
  int least(Subset free, Subset wanted);

  StateSpace& space_;
  DistanceForm form_;
  std::size_t target_count_;
  std::vector<SizeId> target_;
  std::vector<SizeId> frontier_;
  std::vector<int> known_;
  std::unordered_map<std::uint64_t, int> memo_;
};

}  // namespace syno
