// The completion bound: may a partial graph still become an operator within so many steps?
//
// It is asked before a child is built. An abstract frontier forgets everything about a coordinate but its size and its
// kind; a depth-limited search over abstract moves with one memo table answers. Admissible: where a concrete choice is
// lost by abstraction, the better case is taken, so a graph that can be completed is never refused. Tests compare the
// operators found with every mode.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "syno/graph/graph.h"
#include "syno/rules/catalogue.h"
#include "syno/search/size_space.h"
#include "syno/spec/ledger.h"
#include "syno/support/hash.h"

namespace syno {

enum class BoundMode : std::uint8_t {
  kNone,   ///< everything may be completed
  kLoose,  ///< sizes and steps alone: every coordinate can be dropped, every one can be a window
  kFull,   ///< kinds of coordinates, caps and budgets too
};

class CompletionBound {
 public:
  CompletionBound(const Specification& spec, const RuleSet& rules, SizeSpace& sizes,
                  BoundMode mode);

  /// Whether `graph` may become an operator with at most `steps` more steps, none of them a Reduce.
  bool may_complete(const Graph& graph, const Ledger& ledger, int steps);

  /// Whether a graph of reductions alone, or any that has more of them, may become an operator with `steps` more steps.
  /// Counts coordinates only, so it can only get worse with more reductions.
  bool may_complete_with_more(const Graph& graph, int steps);

 private:
  enum Kind : std::uint8_t { kLeaves, kBareReduction, kSharedReduction, kStays };
  struct Coordinate {
    SizeId size;
    Kind kind;
    friend auto operator<=>(const Coordinate&, const Coordinate&) = default;
  };
  struct State {
    std::vector<Coordinate> frontier;
    std::int8_t splits = 0;
    std::int8_t merges = 0;
    std::int8_t unfolds = 0;
    std::int8_t strides = 0;
    std::int8_t weights = 0;
    bool weighted = false;
    Charges left{};
  };
  struct Known {
    std::int8_t refuted = -1;
    std::int8_t proved = 127;
  };

  /// Whether a coordinate of this kind and size can leave in a contraction.
  bool can_leave(const Coordinate& coordinate) const;
  Kind kind_of(const Graph& graph, CoordinateId id) const;
  bool feasible(const State& state, int steps);
  bool is_complete(const State& state) const;
  bool out_of_reach(const State& state, int steps) const;
  bool try_contractions(const State& state, int steps);
  bool try_splits(const State& state, int steps);
  bool try_windows(const State& state, int steps);
  bool try_merges(const State& state, int steps);
  bool try_strides(const State& state, int steps);
  bool try_repeats(const State& state, int steps);
  /// Takes the primary powers of `size` from the budgets; false when they do not suffice.
  bool charge_share(Charges& left, const Size& size) const;
  Hash128 key(const State& state) const;

  const Specification& spec_;
  SizeSpace& sizes_;
  BoundMode mode_;
  bool restrict_dropped_;
  bool restrict_windows_;
  std::vector<SizeId> target_;
  Size target_product_;
  std::unordered_map<Hash128, Known> known_;
};

}  // namespace syno
