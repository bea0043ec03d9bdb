// Lattice: the partial graphs of a set of operators, each once.
//
//            root                 no step is taken
//           /    \                an edge takes one step; every order of independent steps is a path, but reductions
//          a      b               come first and in one order
//        /   \  /   \             .
//       c     d      e            d is reached on two paths and is one node
//       |     | \    |
//       X     Y  Z   V            a leaf: an operator, behind the matching of its frontier
//
// An operator is below a node if the partial graph is a part of it. As every path to an operator is in the lattice, the
// operators below a child are also below each parent of the child.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syno/search/steps.h"

namespace syno {

class Lattice {
 public:
  struct Edge {
    std::uint32_t child = 0;
    /// The step that the edge takes: equal for equal steps on any path.
    std::uint64_t step = 0;
    /// A primitive, or kMatchStep.
    std::uint8_t kind = 0;
  };

  explicit Lattice(const std::vector<LabeledSteps>& operators);

  std::size_t operator_count() const { return above_begin_.size() - 1; }
  std::size_t node_count() const { return edges_begin_.size() - 1; }
  std::size_t edge_count() const { return edges_.size(); }
  static constexpr std::uint32_t root() { return 0; }

  /// Sorted by kind, then step.
  std::span<const Edge> children(std::uint32_t node) const {
    return {edges_.data() + edges_begin_[node], edges_.data() + edges_begin_[node + 1]};
  }
  const Edge& edge(std::size_t number) const { return edges_[number]; }
  /// The number of the first edge of `children(node)` among all edges.
  std::size_t first_edge(std::uint32_t node) const { return edges_begin_[node]; }
  /// The nodes that an operator is below or at, ascending.
  std::span<const std::uint32_t> above(std::uint32_t op) const {
    return {above_.data() + above_begin_[op], above_.data() + above_begin_[op + 1]};
  }
  bool is_below(std::uint32_t op, std::uint32_t node) const;
  /// The operators at a leaf, ascending; nothing for other nodes. Almost always one.
  std::span<const std::uint32_t> operators(std::uint32_t node) const {
    return {leaves_.data() + leaves_begin_[node], leaves_.data() + leaves_begin_[node + 1]};
  }
  /// The operators at or below a node, ascending.
  std::span<const std::uint32_t> below(std::uint32_t node) const {
    return {below_.data() + below_begin_[node], below_.data() + below_begin_[node + 1]};
  }

 private:
  class Builder;

  std::vector<std::size_t> edges_begin_;
  std::vector<Edge> edges_;
  std::vector<std::size_t> above_begin_;
  std::vector<std::uint32_t> above_;
  std::vector<std::size_t> below_begin_;
  std::vector<std::uint32_t> below_;
  std::vector<std::size_t> leaves_begin_;
  std::vector<std::uint32_t> leaves_;
};

}  // namespace syno
