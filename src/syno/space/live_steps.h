// Live steps: what walks and tree searches ask of a partial graph. Positions are those of an expander; in contrast to an
// enumeration, rules are asked of every step, and a step of a graph's own making can be asked about.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "syno/space/expander.h"
#include "syno/space/step_order.h"

namespace syno {

/// One object a thread.
class LiveSteps {
 public:
  /// Keeps references.
  LiveSteps(const Specification& spec, const RuleSet& rules, BoundMode bound);

  Position root();
  /// The position of a graph; throws UserError when the specification refuses one of its steps.
  Position position(const Graph& graph);
  /// The moves below which an operator of at most `limit` primitives may lie and that no rule refuses. Of moves to the
  /// same graph there is one. They come in the order of `mark`, which does not depend on how the graph was built.
  std::vector<LiveMove> from(const Position& position, int limit);
  /// Whether a search takes this step, or one to the same graph.
  bool leads_on(const Position& position, const Step& step, int limit);
  Step step(const Position& position, const Move& move) const;
  void take(Position& position, const Step& step);
  /// Takes a step if the specification allows it, asking nothing else; leaves `position` in between where it does not.
  bool try_take(Position& position, const Step& step);
  Hash128 mark(const Position& position) const { return position.marks.mark(position.state); }

  /// Whether the frontier has the sizes of the input and a weight was made.
  bool may_end(const Position& position) const;
  /// A lower bound for the steps that are missing, at most `most` + 1: nothing is reached within `most` steps then.
  int least_steps(const Position& position, int most);

  /// A hash of a size of this object's table by its content.
  Hash128 size_mark(SizeId size) { return space_.mark(size); }

 private:
  /// Of a child of the position that macs_ has begun with.
  bool alive(const Position& position, const State& child, const Move& move, int limit);
  bool refused(const Position& position, const Step& step) const;

  const Specification& spec_;
  const RuleSet& rules_;
  StateSpace space_;
  CompletionBound bound_;
  MacsBound macs_;
  bool bounds_macs_;
  std::vector<SizeId> target_;
  std::vector<Move> moves_;
};

/// How many graphs lead to a graph: those that have one step less and from which a search takes that step, being reached
/// itself. Remembers what it found, by mark. One object a thread.
class Parents {
 public:
  /// Keeps a reference. `limit`: the most primitives of an operator.
  Parents(LiveSteps& steps, int limit) : steps_(steps), limit_(limit) {}

  /// 0 for the empty graph, and for one that no search comes to.
  int count(const Graph& graph, const Hash128& mark);

 private:
  bool reached(const Graph& graph, const Hash128& mark);
  /// Stops at `most`.
  int count(const Graph& graph, const Hash128& mark, int most);
  /// The graph without its step `last`; nothing when other steps need that one, or the specification refuses it.
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
