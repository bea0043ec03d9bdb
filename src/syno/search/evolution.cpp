#include "syno/search/evolution.h"

#include <algorithm>
#include <tuple>

namespace syno {
namespace {

enum Purpose : std::uint64_t { kSample, kTournament, kMutation };

}  // namespace

Evolution::Evolution(std::shared_ptr<const Neighbors> neighbors, std::uint64_t seed,
                     const EvolutionOptions& options)
    : SearchMethod(neighbors->size(), seed), options_(options), neighbors_(std::move(neighbors)) {}

std::uint32_t Evolution::select(std::uint64_t number) const {
  const auto most = static_cast<std::size_t>(options_.population);
  if (proposed().size() < most) return *sample(number, kSample);
  std::vector<std::uint32_t> population;
  for (auto each = proposed().rbegin(); each != proposed().rend() && population.size() < most;
       ++each) {
    const TrialState state = result(*each).state;
    if (state == TrialState::kDone || state == TrialState::kFailed) population.push_back(*each);
  }
  // Whoever is not in the tournament comes last, so that a parent without new neighbors is replaced.
  std::sort(population.begin(), population.end(), [&](std::uint32_t a, std::uint32_t b) {
    return random_word(number, kTournament, a) < random_word(number, kTournament, b);
  });
  const auto competing = std::min(static_cast<std::size_t>(options_.tournament), population.size());
  const auto rank = [&](std::uint32_t op) {
    return std::tuple(result(op).state != TrialState::kDone, -result(op).value, op);
  };
  std::sort(population.begin(), population.begin() + static_cast<std::ptrdiff_t>(competing),
            [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  for (const std::uint32_t parent : population) {
    std::vector<std::uint32_t> children;
    for (const Neighbor& each :
         neighbors_->nearest(parent, static_cast<std::size_t>(options_.neighbors)))
      children.push_back(each.op);
    if (const auto child = sample(number, kMutation, children)) return *child;
  }
  return *sample(number, kSample);
}

}  // namespace syno
