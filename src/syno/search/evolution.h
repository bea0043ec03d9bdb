// Regularized evolution (Real et al., "Regularized Evolution for Image Classifier Architecture Search", 2019): the
// population is what was evaluated last, so that every operator dies of age. The best of a random tournament is mutated by one
// move (neighbors.h).
#pragma once

#include <memory>

#include "syno/search/method.h"
#include "syno/search/neighbors.h"

namespace syno {

struct EvolutionOptions {
  /// The number of latest proposals with a result that form the population; as many proposals are sampled at the start.
  std::int64_t population = 30;
  /// The number of operators of the population that compete.
  std::int64_t tournament = 10;
  /// The number of nearest operators to which a mutation leads.
  std::int64_t neighbors = 20;
};

class Evolution final : public SearchMethod {
 public:
  Evolution(std::shared_ptr<const Neighbors> neighbors, std::uint64_t seed,
            const EvolutionOptions& options);

 private:
  std::uint32_t select(std::uint64_t number) const override;

  EvolutionOptions options_;
  std::shared_ptr<const Neighbors> neighbors_;
};

}  // namespace syno
