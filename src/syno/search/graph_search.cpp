#include "syno/search/graph_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "syno/support/error.h"

namespace syno {
namespace {

enum Purpose : std::uint64_t { kSample, kTie, kLeaf };

}  // namespace

GraphSearch::GraphSearch(std::shared_ptr<const Lattice> lattice, std::uint64_t seed,
                         const GraphSearchOptions& options)
    : SearchMethod(lattice->operator_count(), seed),
      lattice_(std::move(lattice)),
      options_(options),
      remaining_(*lattice_),
      nodes_(lattice_->node_count()) {}

double GraphSearch::mean(std::uint32_t node) const {
  const Node& at = nodes_[node];
  return at.done == 0 ? 0 : from_fixed(at.sum) / static_cast<double>(at.done);
}

double GraphSearch::best(std::uint32_t node) const {
  return from_fixed(nodes_[node].best);
}

void GraphSearch::inserting(std::uint64_t /*number*/, std::uint32_t op) {
  remaining_.take(*lattice_, op);
}

void GraphSearch::find_best(std::uint32_t node) {
  bool any = false;
  FixedPoint best = 0;
  for (const std::uint32_t op : lattice_->below(node)) {
    if (!result(op).is_done()) continue;
    best = any ? std::max(best, result(op).value) : result(op).value;
    any = true;
  }
  nodes_[node].best = best;
}

void GraphSearch::changed(std::uint32_t op, const TrialResult& before) {
  const TrialResult& now = result(op);
  if (before.is_done()) values_.erase(values_.find(before.value));
  if (now.is_done()) values_.insert(now.value);
  for (const std::uint32_t node : lattice_->above(op)) {
    Node& at = nodes_[node];
    at.visits += int{now.state != TrialState::kNew} - int{before.state != TrialState::kNew};
    at.observed += int{now.has_ended()} - int{before.has_ended()};
    if (before.is_done()) at.sum -= before.value;
    if (now.is_done()) at.sum += now.value;
    at.done += int{now.is_done()} - int{before.is_done()};
    if (before.is_done() && before.value == at.best)
      find_best(node);
    else if (now.is_done() && (at.done == 1 || now.value > at.best))
      at.best = now.value;
  }
}

void GraphSearch::set_prior(std::vector<double> values) {
  const std::unique_lock lock = locked();
  if (!values.empty() && values.size() != operator_count()) {
    throw Complaint("a prior has a value for each operator")
        .expected(std::to_string(operator_count()), std::to_string(values.size()))
        .error();
  }
  if (values == prior_) return;
  prior_ = std::move(values);
  node_prior_.assign(prior_.empty() ? 0 : nodes_.size(), 0);
  for (std::uint32_t node = 0; node < node_prior_.size(); ++node) {
    double sum = 0;
    for (const std::uint32_t op : lattice_->below(node)) sum += prior_[op];
    node_prior_[node] = sum / static_cast<double>(lattice_->below(node).size());
  }
}

double GraphSearch::scaled(double value) const {
  if (values_.empty()) return 0.5;
  const double least = from_fixed(*values_.begin());
  const double range = from_fixed(*values_.rbegin()) - least;
  return range <= 0 ? 0.5 : std::clamp((value - least) / range, 0.0, 1.0);
}

double GraphSearch::scaled_mean(std::uint32_t node, double pulled_to) const {
  const Node& at = nodes_[node];
  const auto done = static_cast<double>(at.done);
  const double sum = at.done == 0 ? 0 : done * scaled(from_fixed(at.sum) / done);
  return (sum + options_.pull * pulled_to) / (static_cast<double>(at.observed) + options_.pull);
}

std::uint32_t GraphSearch::select(std::uint64_t number) const {
  if (static_cast<std::int64_t>(proposed().size()) < options_.samples)
    return *sample(number, kSample);
  std::uint32_t node = Lattice::root();
  double mean = scaled_mean(node, 0.5);
  while (!lattice_->children(node).empty()) {
    double total = 0;
    for (const Lattice::Edge& edge : lattice_->children(node)) total += remaining_[edge.child];
    const double root = std::sqrt(static_cast<double>(nodes_[node].visits) + 1);
    const Lattice::Edge* chosen = nullptr;
    double highest = 0;
    double chosen_mean = 0;
    std::uint64_t tie = 0;
    for (const Lattice::Edge& edge : lattice_->children(node)) {
      if (remaining_[edge.child] == 0) continue;
      const Node& child = nodes_[edge.child];
      const double pulled_to = prior_.empty() ? mean : scaled(node_prior_[edge.child]);
      const double own = scaled_mean(edge.child, pulled_to);
      const double top = child.done == 0 ? own : std::max(own, scaled(from_fixed(child.best)));
      const double score = (1 - options_.mix) * own + options_.mix * top +
                           options_.exploration * (remaining_[edge.child] / total) * root /
                               (1 + static_cast<double>(child.visits));
      const std::uint64_t order = random_word(number, kTie, edge.child);
      if (chosen != nullptr && (score < highest || (score == highest && order > tie))) continue;
      chosen = &edge;
      highest = score;
      chosen_mean = own;
      tie = order;
    }
    ensure(chosen != nullptr, "GraphSearch: a node with operators left has no child");
    node = chosen->child;
    mean = chosen_mean;
  }
  return *sample(number, kLeaf, lattice_->operators(node));
}

}  // namespace syno
