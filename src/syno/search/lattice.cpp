#include "syno/search/lattice.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "syno/support/mix.h"

namespace syno {
namespace {

// An operator with more partial graphs than this is entered with one order of its steps only.
constexpr std::size_t kMostParts = 4096;

using Mask = std::uint64_t;

std::uint64_t part_hash(const LabeledSteps& steps, Mask mask) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if ((mask >> i & 1U) != 0) sum += mix_bits(steps[i].from_output);
  return sum;
}

// Turns (owner, item) pairs into begins and items.
template <class Item>
void group(std::vector<std::pair<std::uint32_t, Item>>& pairs, std::size_t owners,
           std::vector<std::size_t>& begins, std::vector<Item>& items) {
  begins.assign(owners + 1, 0);
  for (const auto& [owner, item] : pairs) ++begins[owner + 1];
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
  items.resize(pairs.size());
  for (auto& [owner, item] : pairs) items[next[owner]++] = std::move(item);
}

}  // namespace

class Lattice::Builder {
 public:
  explicit Builder(Lattice& lattice) : lattice_(lattice) { node(0); }

  void add(const LabeledSteps& steps, std::uint32_t op) {
    if (!add_all(steps, op)) add_chain(steps, op);
  }

  void finish(std::size_t operators) {
    compact();
    group(edges_, nodes_.size(), lattice_.edges_begin_, lattice_.edges_);
    std::sort(above_.begin(), above_.end());
    above_.erase(std::unique(above_.begin(), above_.end()), above_.end());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> below;
    below.reserve(above_.size());
    for (const auto& [op, node] : above_) below.emplace_back(node, op);
    group(above_, operators, lattice_.above_begin_, lattice_.above_);
    group(below, nodes_.size(), lattice_.below_begin_, lattice_.below_);
    group(leaves_, nodes_.size(), lattice_.leaves_begin_, lattice_.leaves_);
  }

 private:
  std::uint32_t node(std::uint64_t hash) {
    return nodes_.try_emplace(hash, static_cast<std::uint32_t>(nodes_.size())).first->second;
  }

  bool add_all(const LabeledSteps& steps, std::uint32_t op) {
    std::unordered_map<Mask, std::uint32_t> parts{{0, root()}};
    std::vector<Mask> order{0};
    std::vector<std::pair<std::uint32_t, Edge>> edges;
    for (std::size_t at = 0; at < order.size(); ++at) {
      const Mask mask = order[at];
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const Mask bit = Mask{1} << i;
        if ((mask & bit) != 0 || (steps[i].needs & ~mask) != 0) continue;
        const auto [place, added] = parts.try_emplace(mask | bit, 0);
        if (added) {
          if (parts.size() > kMostParts) return false;
          place->second = node(part_hash(steps, mask | bit));
          order.push_back(mask | bit);
        }
        edges.emplace_back(parts.at(mask),
                           Edge{place->second, steps[i].from_output, steps[i].kind});
      }
    }
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    for (const auto& [mask, id] : parts) above_.emplace_back(op, id);
    leaves_.emplace_back(parts.at(order.back()), op);
    if (edges_.size() > compact_at_) compact();
    return true;
  }

  void add_chain(const LabeledSteps& steps, std::uint32_t op) {
    Mask mask = 0;
    std::uint32_t at = root();
    above_.emplace_back(op, at);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      mask |= Mask{1} << i;
      const std::uint32_t next = node(part_hash(steps, mask));
      edges_.emplace_back(at, Edge{next, steps[i].from_output, steps[i].kind});
      above_.emplace_back(op, next);
      at = next;
    }
    leaves_.emplace_back(at, op);
  }

  void compact() {
    const auto key = [](const std::pair<std::uint32_t, Edge>& edge) {
      return std::tuple(edge.first, edge.second.kind, edge.second.step, edge.second.child);
    };
    std::sort(edges_.begin(), edges_.end(),
              [&](const auto& a, const auto& b) { return key(a) < key(b); });
    edges_.erase(std::unique(edges_.begin(), edges_.end(),
                             [&](const auto& a, const auto& b) { return key(a) == key(b); }),
                 edges_.end());
    compact_at_ = std::max<std::size_t>(2 * edges_.size(), 1 << 20);
  }

  Lattice& lattice_;
  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;
  std::vector<std::pair<std::uint32_t, Edge>> edges_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> above_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> leaves_;
  std::size_t compact_at_ = 1 << 20;
};

Lattice::Lattice(const std::vector<LabeledSteps>& operators) {
  Builder builder(*this);
  for (std::size_t i = 0; i < operators.size(); ++i)
    builder.add(operators[i], static_cast<std::uint32_t>(i));
  builder.finish(operators.size());
}

bool Lattice::is_below(std::uint32_t op, std::uint32_t node) const {
  const auto nodes = above(op);
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

}  // namespace syno
