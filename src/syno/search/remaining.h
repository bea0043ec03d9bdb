// Remaining: how many operators below each node of a lattice are not proposed yet.
#pragma once

#include <vector>

#include "syno/search/lattice.h"

namespace syno {

class Remaining {
 public:
  explicit Remaining(const Lattice& lattice) {
    below_.reserve(lattice.node_count());
    for (std::uint32_t node = 0; node < lattice.node_count(); ++node)
      below_.push_back(static_cast<std::uint32_t>(lattice.below(node).size()));
  }
  std::uint32_t operator[](std::uint32_t node) const { return below_[node]; }
  void take(const Lattice& lattice, std::uint32_t op) {
    for (const std::uint32_t node : lattice.above(op)) --below_[node];
  }

 private:
  std::vector<std::uint32_t> below_;
};

}  // namespace syno
