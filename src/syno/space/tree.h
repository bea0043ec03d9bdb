// The space as a tree for searches that go down step by step: children of a partial graph, with counts or bounds of what
// lies below them.
//
// Where the whole space is listed, each graph has one parent, the one it was listed under, and counts are exact: a node's
// operators and the counts of its children add up to its own count. Otherwise children are all live steps: a graph may be
// reached over several parents and is known by its mark, and counts are lower bounds out of what is listed.
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
  /// The same for graphs that differ in the order of independent steps or the names of reductions.
  Hash128 mark;
  /// The step that led here, with the names of the graph that it makes; empty for the root.
  std::string step;
  /// A lower bound for the steps that are missing until an operator is complete.
  int least_steps = 0;
  /// Operators at or below this node: all of them where `exact`, otherwise at least so many.
  std::int64_t count = 0;
  bool exact = false;
  /// Its place in the listed space; nothing where it is not listed below the node it was reached from.
  std::optional<std::uint32_t> listed;
};

class Tree {
 public:
  /// Operators of at most `max_depth` primitives (0: as many as the specification allows). `listed`, where it is given,
  /// belongs to the same specification and rules. Keeps references to `spec` and `listed`.
  Tree(const Specification& spec, RuleSet rules, std::int64_t max_depth = 0,
       const Space* listed = nullptr, BoundMode bound = BoundMode::kFull);

  /// Whether every count is exact.
  bool exact() const { return exact_; }
  TreeNode root();
  /// In a fixed order.
  std::vector<TreeNode> children(const TreeNode& node);
  /// The operators that are complete at the node itself. Where the space is listed, they are the node's own share of it,
  /// one a semantic key; otherwise they may be repeats of operators elsewhere.
  std::vector<FoundOperator> operators(const TreeNode& node);

 private:
  TreeNode node(const Position& position);
  std::vector<std::uint32_t> listed_children(std::uint32_t node) const;

  const Specification& spec_;
  RuleSet rules_;
  int limit_;
  const Space* listed_;
  bool exact_;
  LiveSteps steps_;
  OperatorJudge judge_;
  Keyer keyer_;
  /// Of the listed space: operators at or below each node, and the indices of operators by their node.
  std::vector<std::uint32_t> below_;
  std::vector<std::size_t> by_node_;
};

}  // namespace syno
