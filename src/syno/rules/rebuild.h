// Rebuilds a graph step by step with changes: how rules write down what they keep instead.
#pragma once

#include <initializer_list>
#include <utility>

#include "syno/graph/graph.h"
#include "syno/rules/rule.h"
#include "syno/support/inline_vector.h"

namespace syno {

/// Thrown by a rebuild that would need a step by a size of 1: s and s^-1 are both sizes where s is 1 in some layer.
struct NoSuchForm {};

class Rebuild {
 public:
  /// The steps are taken under `guard`, where there is one.
  explicit Rebuild(const Graph& original, Guard* guard = nullptr)
      : original_(original), graph_(original.root()), guard_(guard) {
    now_.assign(original.coordinates().size(), kNoCoordinate);
    for (std::size_t d = 0; d < original.output().size(); ++d)
      now_[d] = static_cast<CoordinateId>(d);
  }
  explicit Rebuild(const RuleContext& context) : Rebuild(context.graph, context.guard) {}

  /// Takes step `index` of the original again, on what its coordinates are now.
  void copy(std::size_t index) {
    const Step& step = original_.steps()[index];
    const Step& taken = take(renamed(step));
    for (int i = 0; i < primitive_info(step.primitive).produces; ++i) {
      rename(step.out[static_cast<std::size_t>(i)], taken.out[static_cast<std::size_t>(i)]);
    }
  }
  /// Copies all steps except those in `skipped`.
  void copy_all_but(std::initializer_list<std::size_t> skipped) {
    for (std::size_t s = 0; s < original_.steps().size(); ++s) {
      bool skip = false;
      for (const std::size_t other : skipped) skip = skip || other == s;
      if (!skip) copy(s);
    }
  }
  /// A new step, whose operands are coordinates of the rebuilt graph.
  Step add(Step step) { return take(std::move(step)); }
  /// A step of the original's coordinates, on what they are now.
  Step renamed(Step step) const {
    for (CoordinateId& id : step.in) {
      if (id != kNoCoordinate) id = now(id);
    }
    for (WeightDim& dim : step.dims) dim.coordinate = now(dim.coordinate);
    step.out = {kNoCoordinate, kNoCoordinate};
    return step;
  }

  /// Where a coordinate of the original is now.
  CoordinateId now(CoordinateId id) const { return now_[static_cast<std::size_t>(id)]; }
  void rename(CoordinateId id, CoordinateId to) { now_[static_cast<std::size_t>(id)] = to; }
  const Graph& graph() const { return graph_; }

 private:
  const Step& take(Step step) {
    if (takes_size(primitive_info(step.primitive).argument) && step.size.is_one())
      throw NoSuchForm();
    if (guard_ != nullptr) guard_->take(graph_, step);
    return graph_.apply(std::move(step));
  }

  const Graph& original_;
  Graph graph_;
  Guard* guard_;
  InlineVector<CoordinateId, 24> now_;
};

/// Graph and step together.
inline Graph whole(const RuleContext& context) {
  Graph graph = context.graph;
  graph.apply(context.step);
  return graph;
}

/// The index of the step that produced `id`.
inline std::size_t step_of(const Graph& graph, CoordinateId id) {
  return static_cast<std::size_t>(graph.coordinate(id).step);
}

/// Whether `id` is produced by `primitive` and no weight holds it.
inline bool is_unshared(const Graph& graph, CoordinateId id, Primitive primitive) {
  const Step* step = graph.producer(id);
  return step != nullptr && step->primitive == primitive && graph.weight_count(id) == 0;
}

/// Whether a contraction holds the coordinate.
inline bool holds(const Step& step, CoordinateId id) {
  for (const WeightDim& dim : step.dims) {
    if (dim.coordinate == id) return true;
  }
  return false;
}

/// Whether a contraction takes the coordinate out of the data.
inline bool takes_out(const Step& step, CoordinateId id) {
  for (const WeightDim& dim : step.dims) {
    if (dim.coordinate == id && dim.role != WeightRole::kKeep) return true;
  }
  return false;
}

/// Whether the same weights hold both.
inline bool same_holders(const Graph& graph, CoordinateId a, CoordinateId b) {
  for (const Weight& weight : graph.weights()) {
    if (weight.holds(a) != weight.holds(b)) return false;
  }
  return true;
}

/// Whether a weight holds the coordinate or anything it is made of.
inline bool seen_by_weight(const Graph& graph, CoordinateId id) {
  return graph.coordinate(id).weights != 0;
}

/// Whether `id` iterates over an unordered output dimension.
inline bool is_unordered_iterator(const Graph& graph, CoordinateId id) {
  return graph.is_iterator(id) &&
         graph.output()[static_cast<std::size_t>(graph.coordinate(id).index)].unordered;
}

}  // namespace syno
