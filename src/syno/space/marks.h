// Marks: 128-bit hashes that tell graphs apart while they grow. Two graphs have one mark when they differ only in the
// order of independent steps, the names of reductions, the order of weights or of dimensions in a weight (the same
// equivalence as structure_hash, canonical.h), or in variables that the specification cannot tell apart.
//
// Equal reductions carry labels; the mark of a graph is the least over all ways to give them out. All ways are carried
// along, so that the mark of a child costs a few words a way and no walk over the graph.
#pragma once

#include <vector>

#include "syno/space/state.h"

namespace syno {

class Marks {
 public:
  Marks() = default;
  /// The marks of the root.
  explicit Marks(StateSpace& space);

  /// The mark of the graph itself.
  Hash128 mark(const State& state) const;
  /// The mark of what `move` makes of a graph in `state` whose marks these are.
  Hash128 after(StateSpace& space, const State& state, const Move& move) const;
  /// Takes the move. `state` is the one before it.
  void advance(StateSpace& space, const State& state, const Move& move);

 private:
  /// More labellings than this are not tried: equal graphs may then have two marks, different ones never one.
  static constexpr std::size_t kMaxLabellings = 720;

  /// How a coordinate is computed under one labelling, and what it adds to a frontier and to a weight that holds it.
  struct Mark {
    Hash128 value;
    Hash128 in_frontier;
    Hash128 in_weight;
  };
  static Mark make(const Hash128& value);
  Mark view(StateSpace& space, const State& state, const Move& move, int result,
            std::size_t labelling) const;
  const Mark& at(std::size_t place, std::size_t labelling) const {
    return slots_[place * labellings_ + labelling];
  }
  void relabel(StateSpace& space, const State& state, SizeId added);

  std::size_t labellings_ = 1;
  /// By place in the frontier, then by labelling.
  std::vector<Mark> slots_;
  /// What weights and repeated coordinates add, by labelling.
  std::vector<Hash128> rest_;
};

}  // namespace syno
