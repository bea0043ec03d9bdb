// Expander: positions in the space of partial graphs and the moves that continue from them. Enumerations and random
// walks share it.
#pragma once

#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/space/bound.h"
#include "syno/space/fingerprints.h"
#include "syno/space/macs_bound.h"
#include "syno/space/space.h"
#include "syno/space/state.h"

namespace syno {

/// A partial graph in all its representations.
struct Position {
  State state;
  Graph graph;
  Ledger ledger;
  Fingerprints fingerprints;
};

/// A move that the specification allows and below which an operator may be.
struct LiveMove {
  /// Its place among all moves of the position.
  std::uint32_t ordinal = 0;
  Move move;
  /// The fingerprint of the graph that it leads to.
  Hash128 fingerprint;
};

/// One object for each thread.
class Expander {
 public:
  /// Keeps references. `costs`: whether max_macs counts.
  Expander(const Specification& spec, const RuleSet& rules, BoundMode bound, bool costs = true);

  Position root();
  /// Applies a move of an enumerated space, which was live when it was enumerated.
  void take(Position& position, const SpaceMove& move);
  /// The moves from `position` below which an operator of at most `limit` primitives may be, in a fixed order; rules are
  /// not yet evaluated. Rejections are counted.
  const std::vector<LiveMove>& live_moves(const Position& position, int limit);
  /// Whether every operator of at most `limit` primitives below a live move of the position that `live_moves` was asked
  /// about last needs more than max_macs. Counted.
  bool costs_too_much(const Position& position, const Move& move, int limit);
  /// The rule that rejects the move, or null.
  const Rule* rejection(const Position& position, const Move& move);
  SpaceMove spelled(const Move& move) const;

  /// Whether the frontier has the sizes of the input.
  bool has_input_sizes(const State& state) const;
  std::size_t bytes() const { return bound_.bytes(); }
  /// The rejections since the last call, by reason.
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
