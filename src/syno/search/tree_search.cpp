#include "syno/search/tree_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "syno/support/error.h"

namespace syno {
namespace {

enum Purpose : std::uint64_t { kIsSample, kSample, kExpand, kSimulate };

}  // namespace

void TreeSearch::Mean::add(FixedPoint reward, int sign) {
  count += sign;
  sum += sign * reward;
  squares += sign * to_fixed(from_fixed(reward) * from_fixed(reward));
}

double TreeSearch::Mean::mean() const {
  return count == 0 ? 0 : from_fixed(sum) / static_cast<double>(count);
}

double TreeSearch::Mean::variance() const {
  if (count == 0) return 0;
  return std::max(0.0, from_fixed(squares) / static_cast<double>(count) - mean() * mean());
}

TreeSearch::TreeSearch(std::shared_ptr<const Lattice> lattice,
                       std::shared_ptr<const std::vector<LabeledSteps>> operators,
                       std::uint64_t seed, const TreeSearchOptions& options)
    : SearchMethod(lattice->operator_count(), seed),
      lattice_(std::move(lattice)),
      operators_(std::move(operators)),
      options_(options),
      remaining_(*lattice_),
      nodes_(lattice_->node_count()),
      edge_means_(lattice_->edge_count()),
      local_edges_(lattice_->edge_count()) {
  for (std::uint32_t node = 0; node < lattice_->node_count(); ++node) {
    kinds_begin_.push_back(kinds_.size());
    const std::size_t first = lattice_->first_edge(node);
    const auto children = lattice_->children(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (i == 0 || children[i].kind != children[i - 1].kind)
        kinds_.push_back({first + i, first + i, children[i].kind});
      kinds_.back().end_edge = first + i + 1;
    }
  }
  kinds_begin_.push_back(kinds_.size());
  kind_places_.resize(kinds_.size());
  local_kinds_.resize(kinds_.size());
  for (const LabeledSteps& steps : *operators_)
    for (const LabeledStep& step : steps) global_steps_[step.from_output];
  nodes_[Lattice::root()].in_tree = true;
}

FixedPoint TreeSearch::reward(FixedPoint value) const {
  return to_fixed(std::pow(std::clamp(from_fixed(value), 0.0, 1.0), options_.power));
}

std::vector<TreeSearch::Child> TreeSearch::kinds_of(std::uint32_t node,
                                                    const std::uint32_t* below) const {
  std::vector<Child> children;
  for (std::size_t kind = kinds_begin_[node]; kind < kinds_begin_[node + 1]; ++kind) {
    if (nodes_of(kind, below).empty()) continue;
    const Place& place = kind_places_[kind];
    children.push_back({&place, &place.rewards, &local_kinds_[kind],
                        &global_kinds_[kinds_[kind].kind], kind, kind});
  }
  return children;
}

std::vector<TreeSearch::Child> TreeSearch::nodes_of(std::size_t kind,
                                                    const std::uint32_t* below) const {
  std::vector<Child> children;
  for (std::size_t edge = kinds_[kind].first_edge; edge < kinds_[kind].end_edge; ++edge) {
    const Lattice::Edge& step = lattice_->edge(edge);
    if (remaining_[step.child] == 0) continue;
    if (below != nullptr && !lattice_->is_below(*below, step.child)) continue;
    children.push_back({&nodes_[step.child], &edge_means_[edge], &local_edges_[edge],
                        &global_steps_.at(step.step), edge, kinds_.size() + step.child});
  }
  return children;
}

double TreeSearch::all_moves(const Child& child) const {
  const double own = static_cast<double>(child.local->count);
  const double share = options_.all_moves / (options_.all_moves + own);
  return (1 - share) * child.local->mean() + share * child.global->mean();
}

double TreeSearch::bound(const Child& child, double log_visits) const {
  const double penalty = options_.pending * static_cast<double>(child.place->pending);
  const Mean& edge = *child.edge;
  if (edge.count == 0) return 1e9 - penalty;
  const double share = log_visits / static_cast<double>(edge.count);
  const double spread = std::min(0.25, edge.variance() + std::sqrt(2 * share));
  return edge.mean() + options_.exploration * std::sqrt(share * spread) - penalty;
}

std::pair<TreeSearch::Child, bool> TreeSearch::choose(std::uint64_t number, const Place& at,
                                                      std::vector<Child> children,
                                                      std::vector<std::size_t>& revealed) const {
  ensure(!children.empty(), "TreeSearch: a node without children was selected");
  const auto visits = static_cast<double>(at.rewards.count + at.pending);
  const auto wanted =
      static_cast<std::size_t>(std::max(1.0, std::floor(std::pow(visits, options_.widening))));
  const auto outside =
      std::stable_partition(children.begin(), children.end(), [&](const Child& child) {
        return child.place->in_tree ||
               std::find(revealed.begin(), revealed.end(), child.slot) != revealed.end();
      });
  auto end = outside;
  while (static_cast<std::size_t>(end - children.begin()) < wanted && end != children.end()) {
    const auto best = std::max_element(end, children.end(), [&](const Child& a, const Child& b) {
      return all_moves(a) < all_moves(b);
    });
    std::iter_swap(end, best);
    revealed.push_back(end->slot);
    ++end;
  }
  children.erase(end, children.end());
  std::vector<std::size_t> unvisited;
  for (std::size_t i = 0; i < children.size(); ++i)
    if (children[i].place->rewards.count == 0) unvisited.push_back(i);
  if (!unvisited.empty()) {
    const auto least =
        std::min_element(unvisited.begin(), unvisited.end(), [&](std::size_t a, std::size_t b) {
          return random_word(number, kExpand, children[a].number) <
                 random_word(number, kExpand, children[b].number);
        });
    return {children[*least], true};
  }
  const double log_visits = std::log(std::max(1.0, static_cast<double>(at.rewards.count)));
  const auto best = std::max_element(
      children.begin(), children.end(),
      [&](const Child& a, const Child& b) { return bound(a, log_visits) < bound(b, log_visits); });
  return {*best, false};
}

TreeSearch::Path TreeSearch::descend(std::uint64_t number, const std::uint32_t* below) const {
  Path path;
  while (!lattice_->children(path.node).empty()) {
    const auto [kind, new_kind] =
        choose(number, nodes_[path.node], kinds_of(path.node, below), path.revealed);
    path.kinds.push_back(kind.number);
    if (new_kind) break;
    const auto [child, new_child] =
        choose(number, *kind.place, nodes_of(kind.number, below), path.revealed);
    path.edges.push_back(child.number);
    path.node = lattice_->edge(child.number).child;
    if (new_child) break;
  }
  return path;
}

std::uint32_t TreeSearch::simulate(std::uint64_t number, const Path& path) const {
  if (path.kinds.size() == path.edges.size())
    return *sample(number, kSimulate, lattice_->below(path.node));
  std::vector<std::uint32_t> below;
  for (std::size_t edge = kinds_[path.kinds.back()].first_edge;
       edge < kinds_[path.kinds.back()].end_edge; ++edge) {
    const auto more = lattice_->below(lattice_->edge(edge).child);
    below.insert(below.end(), more.begin(), more.end());
  }
  return *sample(number, kSimulate, below);
}

bool TreeSearch::is_sample(std::uint64_t number) const {
  return random_share(number, kIsSample) < options_.samples;
}

std::uint32_t TreeSearch::select(std::uint64_t number) const {
  if (is_sample(number)) return *sample(number, kSample);
  return simulate(number, descend(number, nullptr));
}

void TreeSearch::inserting(std::uint64_t number, std::uint32_t op) {
  Path path;
  bool is_selected = false;
  if (!is_sample(number)) {
    path = descend(number, nullptr);
    is_selected = simulate(number, path) == op;
  }
  if (!is_selected) path = descend(number, &op);
  for (const std::size_t slot : path.revealed)
    (slot < kinds_.size() ? kind_places_[slot] : nodes_[slot - kinds_.size()]).in_tree = true;
  path.revealed.clear();
  paths_[op] = std::move(path);
  remaining_.take(*lattice_, op);
}

void TreeSearch::add_pending(std::uint32_t op, int sign) {
  const Path& path = paths_.at(op);
  nodes_[Lattice::root()].pending += sign;
  for (const std::size_t kind : path.kinds) kind_places_[kind].pending += sign;
  for (const std::size_t edge : path.edges) nodes_[lattice_->edge(edge).child].pending += sign;
}

void TreeSearch::visit_path(std::uint32_t op, FixedPoint reward, int sign) {
  const Path& path = paths_.at(op);
  nodes_[Lattice::root()].rewards.add(reward, sign);
  for (const std::size_t kind : path.kinds) kind_places_[kind].rewards.add(reward, sign);
  for (const std::size_t edge : path.edges) {
    nodes_[lattice_->edge(edge).child].rewards.add(reward, sign);
    edge_means_[edge].add(reward, sign);
  }
}

void TreeSearch::visit_steps(std::uint32_t op, FixedPoint reward, int sign) {
  std::array<bool, kStepKinds> used{};
  for (const LabeledStep& step : (*operators_)[op]) {
    global_steps_.at(step.from_output).add(reward, sign);
    if (!std::exchange(used[step.kind], true)) global_kinds_[step.kind].add(reward, sign);
  }
  for (const std::uint32_t node : lattice_->above(op)) {
    for (std::size_t kind = kinds_begin_[node]; kind < kinds_begin_[node + 1]; ++kind) {
      bool any = false;
      for (std::size_t edge = kinds_[kind].first_edge; edge < kinds_[kind].end_edge; ++edge) {
        if (!lattice_->is_below(op, lattice_->edge(edge).child)) continue;
        local_edges_[edge].add(reward, sign);
        any = true;
      }
      if (any) local_kinds_[kind].add(reward, sign);
    }
  }
}

void TreeSearch::changed(std::uint32_t op, const TrialResult& before) {
  const auto apply = [&](const TrialResult& result, int sign) {
    if (result.state == TrialState::kPending) add_pending(op, sign);
    if (!result.has_ended()) return;
    const FixedPoint earned = result.is_done() ? reward(result.value) : 0;
    visit_path(op, earned, sign);
    visit_steps(op, earned, sign);
  };
  apply(before, -1);
  apply(result(op), 1);
}

}  // namespace syno
