// Monte-Carlo graph search for a single player who keeps the best leaf.
//
// Nodes are partial graphs, and a graph that is reached on several paths is one node (KataGo, "Monte-Carlo Graph Search from
// First Principles", 2023; Czech et al., "Improving AlphaZero Using Monte-Carlo Graph Search", 2021). An operator is a
// visit of every edge on every path to it, so the visits of an edge are the proposals below the node that it leads to:
//
//   visits      proposals below the node, those of running trials too (unobserved visits, Liu et al., "Watch the Unobserved",
//               2020); a failed trial is a visit with the worst value
//   mean, best  of the values below the node. They are sums and maxima over distinct operators. So a back-up may be repeated,
//               a value may be replaced, and two paths to one node agree.
//
// A proposal descends from the root. Among the children with operators left it takes the one with the largest
//
//   (1 - mix) * mean + mix * best + exploration * share * sqrt(visits of the node) / (1 + visits of the child)
//
// where values are scaled to the range of all results, the mean is pulled to that of the node as by `pull` more visits (or to
// the prior of the child, where there are priors), and the share is that of the child among the operators left below the
// children. Descent ends at an operator, or samples below a node with few results.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "syno/search/lattice.h"
#include "syno/search/method.h"
#include "syno/search/remaining.h"

namespace syno {

struct GraphSearchOptions {
  /// Proposals that are sampled at the start.
  std::int64_t samples = 10;
  double exploration = 1.0;
  /// How much of the value of a node is that of the best operator below it.
  double mix = 0.6;
  /// How many visits the mean of the node, or the prior, is worth.
  double pull = 1.0;
};

class GraphSearch final : public SearchMethod {
 public:
  GraphSearch(std::shared_ptr<const Lattice> lattice, std::uint64_t seed,
              const GraphSearchOptions& options);

  /// What a surrogate predicts for each operator, in the unit of the values. An empty list removes the priors.
  void set_prior(std::vector<double> values);

  // For tests.
  const Lattice& lattice() const { return *lattice_; }
  std::int64_t visits(std::uint32_t node) const { return nodes_[node].visits; }
  std::int64_t unobserved(std::uint32_t node) const {
    return nodes_[node].visits - nodes_[node].observed;
  }
  /// Of the results below a node, 0 without one: the mean (failures count as the worst), and the best.
  double mean(std::uint32_t node) const;
  double best(std::uint32_t node) const;

 private:
  struct Node {
    std::int64_t visits = 0;
    std::int64_t observed = 0;
    std::int64_t done = 0;
    /// Of the trials that are done.
    FixedPoint sum = 0;
    FixedPoint best = 0;
  };

  std::uint32_t select(std::uint64_t number) const override;
  void inserting(std::uint64_t number, std::uint32_t op) override;
  void changed(std::uint32_t op, const TrialResult& before) override;

  void find_best(std::uint32_t node);
  // From 0, the worst result of all, to 1, the best.
  double scaled(double value) const;
  double scaled_mean(std::uint32_t node, double pulled_to) const;

  std::shared_ptr<const Lattice> lattice_;
  GraphSearchOptions options_;
  Remaining remaining_;
  std::vector<Node> nodes_;
  std::multiset<FixedPoint> values_;
  std::vector<double> prior_;
  /// By node: the mean of the priors below it.
  std::vector<double> node_prior_;
};

}  // namespace syno
