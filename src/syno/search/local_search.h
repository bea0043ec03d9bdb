// Local search: proposes what is nearest to the best operator so far (White et al., "Exploring the Loss Landscape in Neural
// Architecture Search", 2021).
//
//   1. The first proposals are samples.
//   2. The best operator with neighbors that are not proposed yet is the place; the nearest of them is proposed. So a better
//      neighbor becomes the place at once.
//   3. If all neighbors of the best are proposed, the search continues at the next best.
//   4. A share of all proposals are samples: restarts, which leave a local optimum.
//
// What is farther away than a move or two says no more about an operator than a sample does, so it is no neighbor, however
// few neighbors there are.
#pragma once

#include <memory>
#include <set>

#include "syno/search/method.h"
#include "syno/search/neighbors.h"

namespace syno {

struct LocalSearchOptions {
  /// Proposals that are sampled at the start.
  std::int64_t samples = 10;
  /// The number of nearest operators that are the neighbors of an operator.
  std::int64_t neighbors = 20;
  /// The share of later proposals that are sampled.
  double restarts = 0.3;
  /// The greatest distance of a neighbor.
  std::int64_t reach = kMoveReach;
};

class LocalSearch final : public SearchMethod {
 public:
  LocalSearch(std::shared_ptr<const Neighbors> neighbors, std::uint64_t seed,
              const LocalSearchOptions& options);

 private:
  std::uint32_t select(std::uint64_t number) const override;
  void changed(std::uint32_t op, const TrialResult& before) override;

  LocalSearchOptions options_;
  std::shared_ptr<const Neighbors> neighbors_;
  /// Operators with results, the best first.
  std::set<std::pair<FixedPoint, std::uint32_t>> best_;
  /// Whether every neighbor of an operator was proposed.
  mutable std::vector<bool> spent_;
};

}  // namespace syno
