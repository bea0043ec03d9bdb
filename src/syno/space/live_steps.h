// Live steps of a partial graph, for walks and tree searches. Positions are those of an expander; unlike in an
// enumeration, all rules are evaluated for every step, and any step can be checked.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "syno/space/expander.h"
#include "syno/space/step_order.h"

namespace syno {

/// One object for each thread.
class LiveSteps {
 public:
  /// Keeps references.
  LiveSteps(const Specification& spec, const RuleSet& rules, BoundMode bound);

  Position root();
  /// The position of a graph; throws UserError if the specification rejects one of its steps.
  Position position(const Graph& graph);
  /// The moves that no rule rejects and below which an operator of at most `limit` primitives may be. Of moves to the
  /// same graph, one is returned. They are sorted by `fingerprint`, which does not depend on how the graph was built.
  std::vector<LiveMove> from(const Position& position, int limit);
  /// Whether a search takes this step, or an equivalent step to the same graph.
  bool leads_on(const Position& position, const Step& step, int limit);
  Step step(const Position& position, const Move& move) const;
  void take(Position& position, const Step& step);
  /// Applies a step if the specification allows it, without other checks; otherwise `position` is left incomplete.
  bool try_take(Position& position, const Step& step);
  Hash128 fingerprint(const Position& position) const {
    return position.fingerprints.fingerprint(position.state);
  }

  /// Whether the frontier has the sizes of the input and the graph has a weight.
  bool may_end(const Position& position) const;
  /// A lower bound on the number of missing steps, at most `most` + 1, which means more than `most` steps.
  int least_steps(const Position& position, int most);

  /// A hash of the content of a size of the table of this object.
  Hash128 size_fingerprint(SizeId size) { return space_.fingerprint(size); }

 private:
  /// For a child of the position at which macs_ has begun.
  bool alive(const Position& position, const State& child, const Move& move, int limit);
  bool rejected(const Position& position, const Step& step) const;

  const Specification& spec_;
  const RuleSet& rules_;
  StateSpace space_;
  CompletionBound bound_;
  MacsBound macs_;
  bool bounds_macs_;
  std::vector<SizeId> target_;
  std::vector<Move> moves_;
};

/// The number of graphs that lead to a graph: those with one step less, reached by a search, from which the search takes
/// that step. Caches its results by fingerprint. One object for each thread.
class Parents {
 public:
  /// Keeps a reference. `limit`: the largest number of primitives of an operator.
  Parents(LiveSteps& steps, int limit) : steps_(steps), limit_(limit) {}

  /// 0 for the empty graph, and for a graph that no search reaches.
  int count(const Graph& graph, const Hash128& fingerprint);

 private:
  bool reached(const Graph& graph, const Hash128& fingerprint);
  /// Stops at `most`.
  int count(const Graph& graph, const Hash128& fingerprint, int most);
  /// The graph without its step `last`; nothing if other steps need that one, or the specification rejects it.
  std::optional<Position> without(const Graph& graph, std::size_t last, Step& step);

  /// The first `count` steps of the graph, which are reductions. Most graphs share them with others.
  const Position& reduced(const Graph& graph, std::size_t count);

  LiveSteps& steps_;
  int limit_;
  std::map<std::vector<Size>, Position> reduced_;
  std::unordered_map<Hash128, int> counts_;
  std::unordered_map<Hash128, bool> reached_;
};

}  // namespace syno
