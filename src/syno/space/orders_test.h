// The orders in which the steps of a graph may be taken, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/graph/graph.h"

namespace syno::samples {

class Orders {
 public:
  /// A part of the goal: which steps were taken, and where its coordinates stand in what was built.
  struct Partial {
    Graph graph;
    std::uint64_t taken = 0;
    std::vector<CoordinateId> now;
  };

  explicit Orders(Graph goal) : goal_(std::move(goal)) {}

  const Graph& goal() const { return goal_; }
  Partial start() const {
    Partial partial{goal_.root(), 0,
                    std::vector<CoordinateId>(goal_.coordinates().size(), kNoCoordinate)};
    for (std::size_t d = 0; d < goal_.output().size(); ++d)
      partial.now[d] = static_cast<CoordinateId>(d);
    return partial;
  }

  /// Steps of the goal that may come next: reductions first, in ascending order of size.
  std::vector<std::size_t> ready(const Partial& partial) const {
    std::size_t least = count();
    for (std::size_t s = 0; s < count(); ++s) {
      if (taken(partial, s) || goal_.steps()[s].primitive != Primitive::kReduce) continue;
      if (least == count() || goal_.steps()[s].size < goal_.steps()[least].size) least = s;
    }
    if (least < count()) return {least};
    std::vector<std::size_t> steps;
    for (std::size_t s = 0; s < count(); ++s) {
      if (!taken(partial, s) && is_ready(partial, s)) steps.push_back(s);
    }
    return steps;
  }

  /// The step on what was built. The last weight that holds a coordinate which leaves the data drops or joins it.
  Step step(const Partial& partial, std::size_t s) const {
    Step result = goal_.steps()[s];
    result.out = {kNoCoordinate, kNoCoordinate};
    for (CoordinateId& id : result.in) {
      if (id != kNoCoordinate) id = partial.now[static_cast<std::size_t>(id)];
    }
    for (WeightDim& dim : result.dims) {
      const CoordinateId old = dim.coordinate;
      dim.coordinate = partial.now[static_cast<std::size_t>(old)];
      dim.role = !leaves(old) || held_later(partial, old, s)      ? WeightRole::kKeep
                 : partial.graph.weight_count(dim.coordinate) > 0 ? WeightRole::kJoin
                                                                  : WeightRole::kDrop;
    }
    return result;
  }

  Partial take(const Partial& partial, std::size_t s) const {
    Partial next = partial;
    const Step applied = next.graph.apply(step(partial, s));
    for (std::size_t i = 0; i < 2; ++i) {
      const CoordinateId made = goal_.steps()[s].out[i];
      if (made != kNoCoordinate) next.now[static_cast<std::size_t>(made)] = applied.out[i];
    }
    next.taken |= std::uint64_t{1} << s;
    return next;
  }

 private:
  std::size_t count() const { return goal_.steps().size(); }
  static bool taken(const Partial& partial, std::size_t s) { return partial.taken >> s & 1; }
  bool held_later(const Partial& partial, CoordinateId id, std::size_t besides) const {
    for (std::size_t s = 0; s < count(); ++s) {
      if (s == besides || taken(partial, s)) continue;
      for (const WeightDim& dim : goal_.steps()[s].dims) {
        if (dim.coordinate == id) return true;
      }
    }
    return false;
  }
  bool leaves(CoordinateId id) const {
    for (const Step& step : goal_.steps()) {
      for (const WeightDim& dim : step.dims) {
        if (dim.coordinate == id && dim.role != WeightRole::kKeep) return true;
      }
    }
    return false;
  }
  bool is_ready(const Partial& partial, std::size_t s) const {
    const Step& step = goal_.steps()[s];
    const auto is_there = [&](CoordinateId id) {
      return partial.now[static_cast<std::size_t>(id)] != kNoCoordinate;
    };
    for (const CoordinateId id : step.in) {
      if (id != kNoCoordinate && (!is_there(id) || held_later(partial, id, s))) return false;
    }
    for (const WeightDim& dim : step.dims) {
      if (!is_there(dim.coordinate)) return false;
    }
    return true;
  }

  Graph goal_;
};

}  // namespace syno::samples
