// A lower bound on the MACs of every operator that a partial graph can become, under all bindings at once.
//
// Claim. Each weight w of the graph costs every plan of every completion at least
//
//     product over paths of what they carry        (a flow from iterators and reductions, in logarithms)
//
// where a flow starts with at most the extent of an iterator or a reduction, follows the views away from the output, carries
// through no coordinate more than that coordinate's extent, and ends
//   (a) in a dimension of w; or
//   (b) when it started in an iterator, in a coordinate of the frontier that "stays": the caller promises that in every
//       completion what arrives there goes on to coordinates that the input is read at, through extents that carry it.
// The bound of the graph is the sum over its weights, each with a flow of its own.
//
// Proof. Take a plan of a completion and the moment when w is multiplied in. The product has the dimensions of the data and of
// w as executed so far; the stage costs the product of their extents. A plan executes views from the input to the
// output, and a view only after everything that uses what it made. So on each path there is one coordinate that the
// executed views have reached: the last one whose own view is not executed. It is a dimension of the product:
//   (a) Before w is multiplied in, its dimensions are those on which it was made, each replaced by what the executed views
//       on it read, so the path's coordinate is one of them. (The index of a window may be multiplied in before the
//       window is taken; then it is a dimension of w itself.) A Reduce on the path is not summed yet: w waits and depends
//       on it.
//   (b) The data starts with all coordinates that the input is read at, and a view that touches the data replaces what it made
//       by all that it read. No sum removes a coordinate of the path, as it comes from an iterator.
// These coordinates are different dimensions where paths part, so the product of their extents is at least what all paths
// carry together. Different weights are multiplied in different stages, so the costs add up. A weight that a later
// contraction holds as well, repeats and masks only add to it.
//
// The flow is found greedily, in one pass from the input for what coordinates can carry and one from the output: it
// is one of the flows of the claim, not always the largest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "syno/quality/compact_map.h"

namespace syno {

class PartialMacs {
 public:
  /// Keeps a reference.
  explicit PartialMacs(ExtentTable& extents);

  /// Takes a graph whose sizes are in the table of the bindings of `extents`. False when it is too large to be bounded.
  bool read(const Graph& graph);
  /// Adds one more step to it, without the graph; taken back by `pop`. False when it is too large.
  bool push(const Step& step);
  void pop();

  /// The bound under each binding; `lanes` doubles. Where a size of the graph does not fit, the number means nothing.
  /// Rounded: compare with a margin. `stays` are coordinates of the frontier; with `loss`, what goes on from them together
  /// is by these factors less than what arrives.
  const std::vector<double>& bound(CoordinateMask stays, const double* loss = nullptr);
  std::size_t lanes() const { return lanes_; }
  std::size_t weight_count() const { return weights_.size(); }

 private:
  static constexpr std::size_t kMaxCoordinates = CompactMap::kMaxCoordinates;
  struct Node {
    bool slides = false;
    CoordinateId in[2] = {kNoCoordinate, kNoCoordinate};
    CoordinateId out[2] = {kNoCoordinate, kNoCoordinate};
  };

  bool add(const Step& step);
  double* row(std::vector<double>& table, CoordinateId id) {
    return &table[static_cast<std::size_t>(id) * lanes_];
  }
  void set_extent(CoordinateId id, const Size& size);
  void carry(CoordinateMask held, CoordinateMask stays);
  void flow(CoordinateMask held, CoordinateMask stays, CoordinateMask sources);

  ExtentTable& extents_;
  std::size_t lanes_;
  std::vector<Node> nodes_;
  std::vector<CoordinateMask> weights_;
  CoordinateId count_ = 0;
  CoordinateMask iterators_ = 0;
  CoordinateMask reductions_ = 0;
  /// By coordinate and binding: extents, what a coordinate can carry on, and what it does.
  std::vector<double> extent_;
  std::vector<double> room_;
  std::vector<double> can_;
  std::vector<double> does_;
  std::vector<double> one_;
  std::vector<double> product_;
  std::vector<double> stayed_;
  std::vector<double> sum_;
  /// Before the last push.
  std::size_t nodes_before_ = 0;
  std::size_t weights_before_ = 0;
  CoordinateId count_before_ = 0;
  CoordinateMask reductions_before_ = 0;
};

}  // namespace syno
