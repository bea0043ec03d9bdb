// Space: the enumerated partial graphs of a specification, and the operators among them, as a compact value. A graph is its
// parent and a move; both are numbers, 8 bytes a graph. Operators are reached by index, so samples are uniform for free.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/space/state.h"

namespace syno {

/// A move with its size spelled out: independent of any table of sizes.
struct SpaceMove {
  Primitive primitive{};
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  bool causal = false;
  std::int16_t amount = 0;
  std::uint64_t roles = 0;
  Size size;

  friend auto operator<=>(const SpaceMove&, const SpaceMove&) = default;
};

/// The step that `move` takes on `graph`: places are those of its frontier.
Step step_of_move(const Graph& graph, const SpaceMove& move);

struct SpaceNode {
  std::uint32_t parent = 0;
  std::uint32_t move = 0;
};

/// An operator of a space: its graph, and which of the graph's matchings.
struct SpaceOperator {
  std::uint32_t node = 0;
  std::uint32_t matching = 0;
  Hash128 key;
};

/// Rejections by named reason, for one search.
using Rejections = std::map<std::string, std::int64_t, std::less<>>;

class Space {
 public:
  Space() = default;
  explicit Space(const Specification& spec);

  /// Partial graphs, the root among them, level by level.
  std::size_t node_count() const { return nodes.size(); }
  std::size_t operator_count() const { return operators.size(); }
  Graph graph(const Specification& spec, std::uint32_t node) const;
  Operator op(const Specification& spec, std::size_t index) const;
  int depth(std::uint32_t node) const;
  /// Operators of distinct keys by their number of primitives; index 0 is unused.
  std::vector<std::int64_t> operators_by_depth() const;
  /// Operators of distinct keys by multiset of primitives, as "2 reduce, 1 contract".
  std::map<std::string, std::int64_t> operators_by_primitives() const;
  /// Complete graphs by their number of primitives.
  std::vector<std::int64_t> graphs_by_depth() const;
  /// For each node, how many operators lie at or below it in the tree of first parents. They add up: the children of a
  /// node and the node's own operators make its count.
  std::vector<std::uint32_t> operators_below() const;
  /// A number for the set of operators, independent of threads, names of variables and the order of declaration.
  Hash128 signature() const;

  /// Writes the space: a few bytes a graph, with a check sum.
  void save(std::ostream& out) const;
  /// Reads a space back. Throws UserError when the file is none, is damaged or cut off, or was made for another
  /// specification or other rules; the message names the difference.
  static Space load(std::istream& in, const Specification& spec, const std::string& rules);

  std::vector<SpaceNode> nodes;
  std::vector<SpaceMove> moves;
  /// The first node of each level, and the end.
  std::vector<std::uint32_t> levels;
  /// Nodes whose frontier is the input, in order, those without an accepted operator too.
  std::vector<std::uint32_t> graphs;
  /// One operator a key, by depth and key.
  std::vector<SpaceOperator> operators;
  /// Matchings that pass all conditions, before keys are compared, and the sum of their fingerprints.
  std::int64_t structures = 0;
  Hash128 fingerprint_sum;
  std::int64_t depth_limit = 0;
  std::int64_t complete_depth = 0;
  bool exhausted = false;
  /// Partial graphs visited over all depth limits.
  std::int64_t visited = 0;
  Rejections rejections;
  std::string spec_key;
  std::string spec_text;
  std::string rules;
};

}  // namespace syno
