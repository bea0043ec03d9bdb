// The steps of a complete graph, taken again one at a time in another order.
#pragma once

#include <cstddef>
#include <vector>

#include "syno/graph/graph.h"

namespace syno {

/// Keeps count of which steps of `goal` are taken and where its coordinates are in the graph that is built from them.
class StepOrder {
 public:
  /// Keeps a reference to `goal`.
  explicit StepOrder(const Graph& goal);

  const Graph& goal() const { return *goal_; }
  const std::vector<bool>& taken() const { return taken_; }
  bool done() const { return count_ == taken_.size(); }

  /// The steps that could come next, by their number in `goal`. Reductions come before every other step, in ascending
  /// order of size; a coordinate is shared before a view consumes it.
  std::vector<std::size_t> ready() const;
  /// Step `index` on the coordinates of `graph`. The role of a coordinate that it takes follows from what is still to come: the
  /// last weight that holds a coordinate which leaves the data drops or joins it.
  Step translated(std::size_t index, const Graph& graph) const;
  /// Notes that step `index` was taken, as `applied`.
  void take(std::size_t index, const Step& applied);
  void undo(std::size_t index);

  /// Where a coordinate of the goal is now; kNoCoordinate while it is not made.
  CoordinateId now(CoordinateId id) const { return now_[static_cast<std::size_t>(id)]; }
  /// Puts coordinates elsewhere: `to[id]` stands for coordinate id of the graph so far.
  void rename(const std::vector<CoordinateId>& to);

 private:
  const Graph* goal_;
  std::vector<bool> taken_;
  std::size_t count_ = 0;
  std::vector<std::size_t> reductions_;
  std::vector<CoordinateId> now_;
};

}  // namespace syno
