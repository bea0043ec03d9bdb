// The tree search of the paper (Zhuo et al., "Syno: Structured Synthesis for Neural Operators", section 7.2) as its authors
// run it, over the lattice of partial graphs.
//
//   node      a partial graph; its children are kinds of steps
//   kind      a partial graph and a kind of step; its children are the graphs after one such step
//
//   1. Selection. From the root, descend to the child with the largest UCB1-tuned bound (Auer et al., 2002) of the mean
//      reward of the edge, less a penalty for pending trials below the child. Progressive widening: of the children of a
//      node or kind with T visits, T^widening are in the tree. The next to join is the one with the best all-moves-as-first
//      mean: that of all operators below the node that use its step, mixed with that of all operators that use it.
//   2. Expansion. Selection ends where a child in the tree has no visit, at that child.
//   3. Simulation. A random new operator below it is proposed.
//   4. Back-up along the selected path. The reward is a power of the value.
//
// A share of the proposals is sampled from the whole space; their paths follow the children in the tree that they are
// below. What was proposed is never proposed again, and children with nothing left are not selected.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "syno/search/lattice.h"
#include "syno/search/method.h"
#include "syno/search/remaining.h"

namespace syno {

struct TreeSearchOptions {
  /// Of the bound, beside the mean reward: 4 * sqrt(2).
  double exploration = 5.656854249492381;
  double widening = 0.8;
  /// How many visits the mean of all operators is worth in all-moves-as-first.
  double all_moves = 3.0;
  /// The share of proposals that are samples.
  double samples = 0.3;
  /// The reward is the value, from 0 to 1, to this power.
  double power = 4.0;
  /// What a pending trial below a child takes off its bound.
  double pending = 0.3;
};

class TreeSearch final : public SearchMethod {
 public:
  TreeSearch(std::shared_ptr<const Lattice> lattice,
             std::shared_ptr<const std::vector<LabeledSteps>> operators, std::uint64_t seed,
             const TreeSearchOptions& options);

  /// Visits with a result, and pending ones, of the path of all proposals at the root: for tests.
  std::int64_t visits() const { return nodes_[Lattice::root()].rewards.count; }
  std::int64_t pending() const { return nodes_[Lattice::root()].pending; }

 private:
  struct Mean {
    std::int64_t count = 0;
    FixedPoint sum = 0;
    FixedPoint squares = 0;
    void add(FixedPoint reward, int sign);
    double mean() const;
    double variance() const;
  };
  // A node, or a kind of step at a node.
  struct Place {
    Mean rewards;
    std::int64_t pending = 0;
    bool in_tree = false;
  };
  struct Kind {
    std::size_t first_edge = 0;
    std::size_t end_edge = 0;
    std::uint8_t kind = 0;
  };
  // A child of a node (a kind) or of a kind (a node).
  struct Child {
    const Place* place = nullptr;
    const Mean* edge = nullptr;
    const Mean* local = nullptr;
    const Mean* global = nullptr;
    /// Of the kind, or of the edge.
    std::size_t number = 0;
    /// Among the places of all kinds, and then of all nodes.
    std::size_t slot = 0;
  };
  // Numbers of kinds and of edges in turn, from the root; the last one is expanded.
  struct Path {
    std::vector<std::size_t> kinds;
    std::vector<std::size_t> edges;
    /// Slots of those that join the tree.
    std::vector<std::size_t> revealed;
    std::uint32_t node = Lattice::root();
  };

  std::uint32_t select(std::uint64_t number) const override;
  void inserting(std::uint64_t number, std::uint32_t op) override;
  void changed(std::uint32_t op, const TrialResult& before) override;

  // `below`: only children that this operator is below.
  Path descend(std::uint64_t number, const std::uint32_t* below) const;
  // The new operator below the end of a path that is proposed.
  std::uint32_t simulate(std::uint64_t number, const Path& path) const;
  // Whether the proposal is sampled from the whole space.
  bool is_sample(std::uint64_t number) const;
  std::vector<Child> kinds_of(std::uint32_t node, const std::uint32_t* below) const;
  std::vector<Child> nodes_of(std::size_t kind, const std::uint32_t* below) const;
  // The child to go to, and whether it has no visit yet.
  std::pair<Child, bool> choose(std::uint64_t number, const Place& at, std::vector<Child> children,
                                std::vector<std::size_t>& revealed) const;
  double all_moves(const Child& child) const;
  double bound(const Child& child, double log_visits) const;
  void visit_path(std::uint32_t op, FixedPoint reward, int sign);
  void visit_steps(std::uint32_t op, FixedPoint reward, int sign);
  void add_pending(std::uint32_t op, int sign);
  FixedPoint reward(FixedPoint value) const;

  std::shared_ptr<const Lattice> lattice_;
  std::shared_ptr<const std::vector<LabeledSteps>> operators_;
  TreeSearchOptions options_;
  Remaining remaining_;
  std::vector<Place> nodes_;
  std::vector<std::size_t> kinds_begin_;
  std::vector<Kind> kinds_;
  std::vector<Place> kind_places_;
  std::vector<Mean> edge_means_;
  // All moves as first: of a kind at a node, of an edge; of all kinds and steps.
  std::vector<Mean> local_kinds_;
  std::vector<Mean> local_edges_;
  std::array<Mean, kStepKinds> global_kinds_;
  std::unordered_map<std::uint64_t, Mean> global_steps_;
  std::unordered_map<std::uint32_t, Path> paths_;
};

}  // namespace syno
