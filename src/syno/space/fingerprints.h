// Canonical fingerprints: 128-bit hashes that distinguish growing graphs. Two graphs have one fingerprint if they differ
// only in the order of independent steps, the names of reductions, the order of weights or of dimensions in a weight (the same
// equivalence as structure_hash, canonical.h), or in variables that the specification cannot distinguish.
//
// Equal reductions have labels; the fingerprint of a graph is the minimum over all labelings. All labelings are updated
// together, so the fingerprint of a child costs a few words for each labeling and no traversal of the graph.
#pragma once

#include <vector>

#include "syno/space/state.h"

namespace syno {

class Fingerprints {
 public:
  Fingerprints() = default;
  /// The fingerprints of the root.
  explicit Fingerprints(StateSpace& space);

  /// The fingerprint of the graph itself.
  Hash128 fingerprint(const State& state) const;
  /// The fingerprint of the graph after `move`, in `state` with these fingerprints.
  Hash128 after(StateSpace& space, const State& state, const Move& move) const;
  /// Applies the move. `state` is the state before it.
  void advance(StateSpace& space, const State& state, const Move& move);

 private:
  /// No more labelings are tried: equal graphs may then have two fingerprints, but different graphs never have one.
  static constexpr std::size_t kMaxLabellings = 720;

  /// How a coordinate is computed under one labeling, and what it adds to a frontier and to a weight that holds it.
  struct Fingerprint {
    Hash128 value;
    Hash128 in_frontier;
    Hash128 in_weight;
  };
  static Fingerprint make(const Hash128& value);
  Fingerprint view(StateSpace& space, const State& state, const Move& move, int result,
                   std::size_t labelling) const;
  const Fingerprint& at(std::size_t place, std::size_t labelling) const {
    return slots_[place * labellings_ + labelling];
  }
  void relabel(StateSpace& space, const State& state, SizeId added);

  std::size_t labellings_ = 1;
  /// By place in the frontier, then by labeling.
  std::vector<Fingerprint> slots_;
  /// What weights and repeated coordinates add, by labeling.
  std::vector<Hash128> rest_;
};

}  // namespace syno
