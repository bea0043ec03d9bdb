// Expander: positions in the space of partial graphs and the moves that lead on from them. What an enumeration and random
// walks share.
#pragma once

#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/space/bound.h"
#include "syno/space/macs_bound.h"
#include "syno/space/marks.h"
#include "syno/space/space.h"
#include "syno/space/state.h"

namespace syno {

/// A partial graph in all its views.
struct Position {
  State state;
  Graph graph;
  Ledger ledger;
  Marks marks;
};

/// A move from a position that the specification allows and below which an operator may lie.
struct LiveMove {
  /// Its place among all moves of the position.
  std::uint32_t ordinal = 0;
  Move move;
  /// The mark of the graph that it leads to.
  Hash128 mark;
};

/// One object a thread.
class Expander {
 public:
  /// Keeps references. `costs`: whether max_macs counts.
  Expander(const Specification& spec, const RuleSet& rules, BoundMode bound, bool costs = true);

  Position root();
  /// Takes a move of a listed space; it must be one that was found live.
  void take(Position& position, const SpaceMove& move);
  /// The moves from `position` below which an operator of at most `limit` primitives may lie, in a fixed order; rules are
  /// not asked yet. Rejections are counted.
  const std::vector<LiveMove>& live_moves(const Position& position, int limit);
  /// Whether every operator of at most `limit` primitives below a live move of the position that `live_moves` was asked
  /// about last needs more than max_macs. Counted.
  bool costs_too_much(const Position& position, const Move& move, int limit);
  /// The rule that refuses the move, or null.
  const Rule* refusal(const Position& position, const Move& move);
  SpaceMove spelled(const Move& move) const;

  /// Whether the frontier has the sizes of the input.
  bool has_input_sizes(const State& state) const;
  std::size_t bytes() const { return bound_.bytes(); }
  /// What was rejected since the last call, by reason.
  Rejections take_rejections();

 private:
  void count(Reason reason);

  const Specification& spec_;
  const RuleSet& rules_;
  StateSpace space_;
  CompletionBound bound_;
  MacsBound macs_;
  bool bounds_macs_;
  bool macs_begun_ = false;
  bool drop_restricted_;
  std::vector<SizeId> target_;
  std::vector<Move> moves_;
  std::vector<LiveMove> live_;
  std::vector<std::pair<Reason, std::int64_t>> reasons_;
};

}  // namespace syno
