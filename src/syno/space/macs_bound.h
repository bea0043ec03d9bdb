// The bound on MACs: does every operator that a partial graph may still become need more MACs than max_macs?
//
// plan/partial_macs.h bounds the MACs of all completions, given which coordinates of the frontier stay in the data. Which do
// follows from the specification:
//
//   A primary variable is *complete* when no step can bring in more of it (no Reduce or Stride may follow, or its budget
//   is used up) and the frontier has as much of it as the input. Primaries are in no denominator, and Splits, Merges, Shifts
//   and the place of a window keep all of it; so a contraction, Expand or window index that took a coordinate with it
//   away would leave too little for the input.
//
//   So a coordinate with a complete variable stays, but for what a Merge may cut off from it: a piece without complete
//   variables. While one Merge is left, the others' extents go on as a whole but for the factor
//       (what arrives at some such coordinates) / (the least size that has their complete variables)
//   where some dimension of the input must have all of these, and no less of other primaries, as no further Merge parts
//   them; with only two steps left, that piece is a dimension of the input itself. While more Merges are left,
//   nothing is promised.
//
//   Any other coordinate stays when no step can take it away: no weight is left or its budgets do not allow to hold it, no
//   Expand is allowed, it is no window, and no Merge may cut it.
//
// The sum is taken over the bindings that every completion fits. Numbers are doubles; a margin covers their rounding.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "syno/plan/partial_macs.h"
#include "syno/space/state.h"

namespace syno {

inline constexpr Reason kMacsBoundReason = "macs_bound";

class MacsBound {
 public:
  /// Keeps references.
  MacsBound(const Specification& spec, const SizeSpace& sizes);
  MacsBound(const MacsBound&) = delete;
  MacsBound& operator=(const MacsBound&) = delete;

  /// Whether the specification has an upper limit.
  bool is_on() const { return limit_ > 0; }
  /// The graph whose children are asked about.
  void begin(const Graph& graph);
  /// Whether every operator below the child in the state `child`, which the step `last` leads to, with at most `steps`
  /// more steps, needs more than max_macs.
  bool rejects(const State& child, const Step& last, int steps);

  /// The bound over all layers by multiplicity, for the graph of `begin` in `state`.
  double least_macs(const State& state, int steps);
  /// The same of one binding alone, where every completion fits it; else 0.
  double least_macs(const State& state, int steps, std::size_t binding);

 private:
  using Powers = std::array<std::int8_t, kMaxVariables>;

  bool bring_in_more(const State& state, std::size_t variable) const;
  /// Bit v: the primary v is complete.
  std::uint32_t complete_variables(const State& state) const;
  bool stays_whole(const State& state, const Slot& slot, int steps) const;
  /// The bindings that every completion fits.
  FitMask certain(const State& state) const;
  void find_loss(const State& state, std::uint32_t complete, CoordinateMask stays, int steps);
  /// The least extents, by binding, of sizes with exactly these powers of the variables in `complete`, and of other primaries
  /// at most those of the input's dimension `dim`.
  const std::vector<double>& least(const Powers& powers, std::uint32_t complete, std::size_t dim);
  const std::vector<double>& bound(const State& state, int steps);

  const Specification& spec_;
  const SizeSpace& sizes_;
  double limit_;
  ExtentTable extents_;
  PartialMacs partial_;
  bool usable_ = false;
  std::array<std::int16_t, kMaxVariables> input_powers_{};
  std::vector<double> loss_;
  /// What find_loss found: by the sizes that stay, the complete variables, and whether two steps are left.
  std::map<std::tuple<std::vector<SizeId>, std::uint32_t, bool>, std::vector<double>> losses_;
  std::map<std::tuple<Powers, std::uint32_t, std::size_t>, std::vector<double>> least_;
};

}  // namespace syno
