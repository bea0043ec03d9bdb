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

#include <memory>
#include <string>
#include <vector>

#include "syno/graph/primitive.h"
#include "syno/graph/shape.h"
#include "syno/sizes/variables.h"
#include "syno/support/inline_vector.h"

namespace syno {

/// Coordinate::free of what only Reduces are behind.
inline constexpr std::int16_t kFreeReduction = -2;
inline constexpr std::int16_t kNotFree = -1;

struct Coordinate {
  Size extent;
  /// The step that produced it; -1 for an output iterator.
  std::int16_t step = -1;
  /// Which result of that step; for an output iterator, the output dimension.
  std::int16_t index = 0;
  /// The number of views from an iterator or reduction to it.
  std::int16_t chain = 0;
  /// How many weights hold it.
  std::int16_t weight_count = 0;
  /// Made of reductions alone.
  bool reductions_only = false;
  /// Made of a causal output dimension.
  bool causal = false;
  /// Free coordinates of one class and with the same `weights` are one-to-one functions of the digits of what they are
  /// made of, so they may be renumbered, each and together, without changing the operator: made of Reduces
  /// (kFreeReduction), or of the iterator of the unordered output dimension of this number. kNotFree: none of these.
  std::int16_t free = kNotFree;
  /// Bit w: weight w holds it or something that it is made of; bit 63 stands for all further ones.
  std::uint64_t weights = 0;

  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

/// A weight tensor: its dimensions, ordered by coordinate.
struct Weight {
  InlineVector<CoordinateId, 8> dims;
  /// The contraction that made it.
  std::int16_t step = -1;

  bool holds(CoordinateId id) const;
  friend bool operator==(const Weight&, const Weight&) = default;
};

/// Copying a graph of up to a dozen steps takes no heap memory. Its table and output shape are shared with the graph it
/// was copied from, so threads that copy a lot start from roots of their own.
class Graph {
 public:
  using Coordinates = InlineVector<Coordinate, 20>;
  using Steps = InlineVector<Step, 12>;
  using Frontier = InlineVector<CoordinateId, 12>;
  using Weights = InlineVector<Weight, 3>;

  Graph() = default;
  /// The empty graph: the frontier holds one iterator an output dimension.
  Graph(VariablesPtr variables, Shape output);

  /// Takes one step. Throws UserError when the step is malformed: a coordinate that is not in the frontier or used
  /// twice, a wrong role, an empty contraction. Whether sizes are legal is the specification's affair.
  /// Returns the step as stored, with `out` filled in.
  const Step& apply(Step step);

  /// The empty graph of the same output and table.
  Graph root() const;

  const VariablesPtr& variables() const { return frame().variables; }
  const Shape& output() const { return frame().output; }
  const Coordinates& coordinates() const { return coordinates_; }
  const Coordinate& coordinate(CoordinateId id) const {
    return coordinates_[static_cast<std::size_t>(id)];
  }
  const Size& extent(CoordinateId id) const { return coordinate(id).extent; }
  const Steps& steps() const { return steps_; }
  /// Coordinates the data is read at, ascending.
  const Frontier& frontier() const { return frontier_; }
  const Weights& weights() const { return weights_; }

  bool in_frontier(CoordinateId id) const;
  bool is_iterator(CoordinateId id) const { return coordinate(id).step < 0; }
  bool is_reduction(CoordinateId id) const {
    const Step* step = producer(id);
    return step != nullptr && step->is_reduction();
  }
  /// Whether `id` is made of reductions alone.
  bool reductions_only(CoordinateId id) const { return coordinate(id).reductions_only; }
  /// The step that produced `id`, or nothing for an output iterator.
  const Step* producer(CoordinateId id) const {
    const std::int16_t step = coordinate(id).step;
    return step < 0 ? nullptr : &steps_[static_cast<std::size_t>(step)];
  }
  /// How many weights hold `id`.
  int weight_count(CoordinateId id) const { return coordinate(id).weight_count; }
  /// How many steps use each primitive; a contraction counts once.
  std::array<int, kPrimitiveCount> primitive_counts() const;
  int count(Primitive primitive) const {
    return primitive_counts()[static_cast<std::size_t>(primitive)];
  }
  int depth() const { return static_cast<int>(steps_.size()); }

  /// The extents of what `step` would make of coordinates of this graph.
  std::array<Size, 2> extents_made(const Step& step) const;

  /// "o2" for an output iterator, "r1" for the second reduction, "c3" for the fourth other coordinate, by order of making.
  std::string name(CoordinateId id) const;

  /// The same graph with its sizes in another table, which must know every variable that is used.
  Graph in_table(const VariablesPtr& variables) const;

  /// Equality of content as stored; graphs that were built in another order are compared by structure_hash.
  friend bool operator==(const Graph& a, const Graph& b);

 private:
  /// What never changes and copies share.
  struct Frame {
    VariablesPtr variables;
    Shape output;
  };

  explicit Graph(std::shared_ptr<const Frame> frame);
  const Frame& frame() const;
  void check(const Step& step) const;
  void check_free(CoordinateId id, const Step& step) const;
  std::int16_t freedom(const Step& step) const;
  void add_coordinate(const Step& step, int index, const Size& extent);
  [[noreturn]] void fail(const Step& step, const std::string& message) const;

  std::shared_ptr<const Frame> frame_;
  Coordinates coordinates_;
  Steps steps_;
  Frontier frontier_;
  Weights weights_;
};

}  // namespace syno
