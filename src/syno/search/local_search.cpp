#include "syno/search/local_search.h"

namespace syno {
namespace {

enum Purpose : std::uint64_t { kSample, kRestart, kNeighbor };

}  // namespace

LocalSearch::LocalSearch(std::shared_ptr<const Neighbors> neighbors, std::uint64_t seed,
                         const LocalSearchOptions& options)
    : SearchMethod(neighbors->size(), seed),
      options_(options),
      neighbors_(std::move(neighbors)),
      spent_(operator_count(), false) {}

void LocalSearch::changed(std::uint32_t op, const TrialResult& before) {
  if (before.is_done()) best_.erase({-before.value, op});
  if (result(op).is_done()) best_.emplace(-result(op).value, op);
}

std::uint32_t LocalSearch::select(std::uint64_t number) const {
  const bool starts = proposed().size() < static_cast<std::size_t>(options_.samples);
  if (starts || random_share(number, kRestart) < options_.restarts) return *sample(number, kSample);
  for (const auto& [value, place] : best_) {
    if (spent_[place]) continue;
    std::vector<std::uint32_t> nearest;
    std::uint32_t distance = 0;
    for (const Neighbor& each :
         neighbors_->nearest(place, static_cast<std::size_t>(options_.neighbors))) {
      if (each.distance > options_.reach) break;
      if (!is_new(each.op)) continue;
      if (!nearest.empty() && each.distance > distance) break;
      distance = each.distance;
      nearest.push_back(each.op);
    }
    if (!nearest.empty()) return *sample(number, kNeighbor, nearest);
    spent_[place] = true;
  }
  return *sample(number, kSample);
}

}  // namespace syno
