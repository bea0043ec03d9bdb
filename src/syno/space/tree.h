// The space as a tree for searches that descend step by step: children of a partial graph, with counts or bounds on the
// number of operators below them.
//
// If the whole space is enumerated, each graph has one parent, the one under which it was enumerated, and counts are exact:
// the count of a node is its own operators plus the counts of its children. Otherwise children are all live steps: a graph may be
// reached from several parents and is known by its fingerprint, and counts are lower bounds from what is enumerated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syno/key/key.h"
#include "syno/space/accept.h"
#include "syno/space/enumerate.h"
#include "syno/space/live_steps.h"

namespace syno {

struct TreeNode {
  Graph graph;
  /// Equal for graphs that differ in the order of independent steps or the names of reductions.
  Hash128 fingerprint;
  /// The last step, with the names of the graph after it; empty for the root.
  std::string step;
  /// A lower bound on the number of missing steps.
  int least_steps = 0;
  /// The number of operators at or below this node; a lower bound unless `exact`.
  std::int64_t count = 0;
  bool exact = false;
  /// Its place in the enumerated space; nothing if it is not enumerated below the node from which it was reached.
  std::optional<std::uint32_t> enumerated;
};

class Tree {
 public:
  /// Operators of at most `max_depth` primitives (0: as many as the specification allows). `enumerated`, where it is given,
  /// belongs to the same specification and rules. Keeps references to `spec` and `enumerated`.
  Tree(const Specification& spec, RuleSet rules, std::int64_t max_depth = 0,
       const Space* enumerated = nullptr, BoundMode bound = BoundMode::kFull);

  /// Whether every count is exact.
  bool exact() const { return exact_; }
  TreeNode root();
  /// In a fixed order.
  std::vector<TreeNode> children(const TreeNode& node);
  /// The operators that are complete at the node itself. If the space is enumerated, one for each semantic key, without
  /// those of other nodes; otherwise they may repeat operators of other nodes.
  std::vector<FoundOperator> operators(const TreeNode& node);

 private:
  TreeNode node(const Position& position);
  std::vector<std::uint32_t> enumerated_children(std::uint32_t node) const;

  const Specification& spec_;
  RuleSet rules_;
  int limit_;
  const Space* enumerated_;
  bool exact_;
  LiveSteps steps_;
  OperatorChecker checker_;
  Keyer keyer_;
  /// Of the enumerated space: operators at or below each node, and the indices of operators by their node.
  std::vector<std::uint32_t> below_;
  std::vector<std::size_t> by_node_;
};

}  // namespace syno
