// Operator: a complete graph with its matching to the input, in canonical form. It travels as text:
//
//     syno operator 1
//     out [N, C_out: unordered, H, H]
//     in [N, C_in: unordered, H, H]
//     reduce C_in -> r0
//     reduce k -> r1
//     reduce k -> r2
//     contract o1:drop r0:keep r1:keep r2:keep
//     unfold o2 r1 -> c0
//     unfold o3 r2 -> c1
//     match o0 r0 c0 c1
//
// Line by line: `split a b -> c`, `merge a BLOCK -> q m`, `shift a AMOUNT -> c`, `expand a`, `unfold a b [causal] -> c`,
// `stride a FACTOR -> c`, `reduce SIZE -> r`, `contract a:role ...`; `#` starts a comment. A partial graph has the first
// line `syno graph 1` and neither `in` nor `match`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syno/graph/graph.h"
#include "syno/support/hash.h"

namespace syno {

class Operator {
 public:
  Operator() = default;
  /// Matches the frontier of `graph` to `input`: match[d] is the coordinate that input dimension d is read at.
  /// Brings everything into canonical form, in a table of the variables that are used. Throws UserError when the matching is not one to one or sizes differ.
  Operator(const Graph& graph, Shape input, std::vector<CoordinateId> match);

  const Graph& graph() const { return graph_; }
  const Shape& input() const { return input_; }
  const Shape& output() const { return graph_.output(); }
  const std::vector<CoordinateId>& match() const { return match_; }
  const VariablesPtr& variables() const { return graph_.variables(); }

  /// The same operator with its sizes in another table, which must know every variable that is used.
  Operator in_table(const VariablesPtr& variables) const;

  /// The canonical text; equal operators have equal text.
  std::string text() const;
  static Operator parse(std::string_view text);

  /// The hash of the canonical form: equal for operators that differ only by names of reductions and the order of
  /// independent steps, weights and weight dimensions.
  const Hash128& structure() const { return structure_; }

  /// Whether a coordinate goes from the output to the input untouched: any extent would do.
  bool passes_through(CoordinateId id) const;
  /// The variable of the first dimensions, where these are one dimension that passes through and no other size has it: the
  /// batch. Nothing for an operator without one.
  std::optional<std::string> batch() const;

  /// Extents of each weight's dimensions, in canonical order.
  std::vector<std::vector<Size>> weight_shapes() const;

  friend bool operator==(const Operator& a, const Operator& b) {
    return a.structure_ == b.structure_;
  }
  friend auto operator<=>(const Operator& a, const Operator& b) {
    return a.structure_ <=> b.structure_;
  }

 private:
  Graph graph_;
  Shape input_;
  std::vector<CoordinateId> match_;
  Hash128 structure_;
};

/// The text of a partial graph, in canonical form, and back.
std::string graph_text(const Graph& graph);
Graph parse_graph(std::string_view text);

/// Every way to match the frontier of `graph` one to one with `input` with equal sizes, where `fixed` pairs
/// (output dimension, input dimension) are matched to each other. Matchings that differ by renaming reductions are one.
std::vector<std::vector<CoordinateId>> matchings(const Graph& graph, const Shape& input,
                                                 const std::vector<std::pair<int, int>>& fixed);

}  // namespace syno
