// Partial graphs: what has been built so far from the output towards the input.
//
//   output iterators o0, o1, ...        the frontier at the start
//        |  steps (views, reductions, contractions) consume coordinates of the frontier and add new ones
//   data frontier                       coordinates the data is read at; complete when they match the input's dimensions
//   weights                             coordinates that each weight tensor is read at
//
// A graph is a value. Its meaning does not depend on the order in which independent steps were taken, on the names of
// reductions, or on the order of dimensions in a weight; `structure_hash` (canonical.h) does not either.
#pragma once

#include <string>
#include <vector>

#include "syno/graph/primitive.h"
#include "syno/graph/shape.h"
#include "syno/sizes/variables.h"

namespace syno {

struct Coordinate {
  Size extent;
  /// The step that produced it; -1 for an output iterator.
  std::int16_t step = -1;
  /// Which result of that step; for an output iterator, the output dimension.
  std::int16_t index = 0;

  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

/// A weight tensor: its dimensions, ordered by coordinate.
struct Weight {
  std::vector<CoordinateId> dims;
  /// The contraction that made it.
  std::int16_t step = -1;

  bool holds(CoordinateId id) const;
  friend bool operator==(const Weight&, const Weight&) = default;
};

class Graph {
 public:
  Graph() = default;
  /// The empty graph: the frontier holds one iterator an output dimension.
  Graph(VariablesPtr variables, Shape output);

  /// Takes one step. Throws UserError when the step is malformed: a coordinate that is not in the frontier or used
  /// twice, a wrong role, an empty contraction. Whether sizes are legal is the specification's affair.
  /// Returns the step as stored, with `out` filled in.
  const Step& apply(Step step);

  const VariablesPtr& variables() const { return variables_; }
  const Shape& output() const { return output_; }
  const std::vector<Coordinate>& coordinates() const { return coordinates_; }
  const Coordinate& coordinate(CoordinateId id) const {
    return coordinates_[static_cast<std::size_t>(id)];
  }
  const Size& extent(CoordinateId id) const { return coordinate(id).extent; }
  const std::vector<Step>& steps() const { return steps_; }
  /// Coordinates the data is read at, ascending.
  const std::vector<CoordinateId>& frontier() const { return frontier_; }
  const std::vector<Weight>& weights() const { return weights_; }

  bool in_frontier(CoordinateId id) const;
  bool is_iterator(CoordinateId id) const { return coordinate(id).step < 0; }
  bool is_reduction(CoordinateId id) const;
  /// Whether `id` is made of reductions alone.
  bool reductions_only(CoordinateId id) const;
  /// The step that produced `id`, or nothing for an output iterator.
  const Step* producer(CoordinateId id) const;
  /// How many weights hold `id`.
  int share_count(CoordinateId id) const;
  /// The last weight that holds `id`, or -1.
  int newest_weight(CoordinateId id) const;
  /// How many steps use each primitive; a contraction counts once.
  std::array<int, kPrimitiveCount> primitive_counts() const;
  int count(Primitive primitive) const {
    return primitive_counts()[static_cast<std::size_t>(primitive)];
  }
  int depth() const { return static_cast<int>(steps_.size()); }

  /// "o2" for an output iterator, "r1" for the second reduction, "c3" for the fourth other coordinate, by order of making.
  std::string name(CoordinateId id) const;

  /// The same graph with its sizes in another table, which must know every variable that is used.
  Graph in_table(const VariablesPtr& variables) const;

  /// Equality of content as stored; graphs that were built in another order are compared by structure_hash.
  friend bool operator==(const Graph& a, const Graph& b);

 private:
  void take(CoordinateId id, const Step& step);
  [[noreturn]] void fail(const Step& step, const std::string& message) const;

  VariablesPtr variables_;
  Shape output_;
  std::vector<Coordinate> coordinates_;
  std::vector<Step> steps_;
  std::vector<CoordinateId> frontier_;
  std::vector<Weight> weights_;
};

}  // namespace syno
