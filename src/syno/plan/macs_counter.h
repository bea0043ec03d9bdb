// The MACs of the cheapest plan of an operator under all bindings at once, for many operators a second.
//
// The same dynamic program over sets of executed steps as order.h, with less to choose from. A view that only re-indexes
// what it touches, or makes it smaller, is executed as soon as it is ready:
//
//   Split, Shift, Stride    always
//   Merge                   when the data has both of its parts, or neither and no waiting weight has one alone
//   Unfold                  when the data has its result and its window index already
//
// Proof. Take any order from there on, and move such a view to its front. Every other move stays ready, as more executed
// steps never make a step less ready, and finds data and weights of at most as many elements in what it multiplies.
// Where the view makes a Reduce ready earlier, more is summed for nothing; and from data with some ready Reduce summed
// already, every further order costs at most what it costs otherwise (move by move: sums of it alone are left out, all
// products have less data). After the view, both orders have executed the same steps, and the data's dimensions follow
// from those.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "syno/quality/compact_map.h"
#include "syno/support/flat_table.h"

namespace syno {

class MacsCounter {
 public:
  /// Keeps a reference.
  explicit MacsCounter(const ExtentTable& extents);

  /// The MACs under each binding, to be read with `macs`. False when some number does not fit in 53 bits, or the
  /// operator has too many steps or orders: order.h takes care of it.
  bool count(const Graph& graph, const CompactMap& map, FitMask fit);
  std::int64_t macs(std::size_t binding) const { return macs_[binding]; }

 private:
  static constexpr std::size_t kMaxWeights = CompactMap::kMaxWeights;
  /// Sets of executed steps that are followed.
  static constexpr std::size_t kMaxStates = 4096;

  struct View {
    CoordinateMask in = 0;
    CoordinateMask out = 0;
    bool cuts = false;
    /// The index of the window, where it is one.
    CoordinateMask window = 0;
  };
  struct State {
    /// Views, then weights, that are not executed yet.
    std::uint64_t views = 0;
    std::uint64_t weights = 0;
    /// Reduces that are not summed yet, by coordinate.
    CoordinateMask reduces = 0;
    /// Coordinates that no waiting view consumes.
    CoordinateMask open = 0;
    CoordinateMask data = 0;
    std::array<CoordinateMask, kMaxWeights> dims{};
  };
  struct Slot {
    std::uint64_t views = 0;
    std::uint64_t weights = 0;
    CoordinateMask reduces = 0;
    /// Place of the costs, in a generation. A slot of an older one may be taken again.
    std::uint32_t generation = 0;
    std::uint32_t place = 0;
    bool is_free() const { return generation == 0; }
  };

  CoordinateMask waiting(const State& state) const;
  void execute(State& state, std::size_t view) const;
  bool is_free_to_execute(const State& state, std::size_t view) const;
  void settle(State& state) const;
  /// The place of the least costs of going on from `state`; false when there are too many states.
  bool solve(State state, std::size_t& place);
  void offer(std::size_t place, CoordinateMask elements, std::size_t next);

  const ExtentTable& extents_;
  /// Doubles are exact up to 2^53 and never round a larger number below it, so minima below are exact.
  std::size_t lanes_;
  std::vector<double> extents_of_;
  std::vector<std::int64_t> macs_;
  std::vector<View> views_;
  FlatTable<Slot> slots_;
  std::uint32_t generation_ = 0;
  std::vector<double> costs_;
  std::size_t states_ = 0;
};

}  // namespace syno
