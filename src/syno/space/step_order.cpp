#include "syno/space/step_order.h"

#include <algorithm>

namespace syno {

StepOrder::StepOrder(const Graph& goal) : goal_(&goal), taken_(goal.steps().size(), false) {
  for (std::size_t s = 0; s < goal.steps().size(); ++s) {
    if (goal.steps()[s].is_reduction()) reductions_.push_back(s);
  }
  std::stable_sort(reductions_.begin(), reductions_.end(), [&](std::size_t a, std::size_t b) {
    return goal.steps()[a].size < goal.steps()[b].size;
  });
  now_.assign(goal.coordinates().size(), kNoCoordinate);
  for (std::size_t d = 0; d < goal.output().size(); ++d) now_[d] = static_cast<CoordinateId>(d);
}

std::vector<std::size_t> StepOrder::ready() const {
  for (const std::size_t s : reductions_) {
    if (!taken_[s]) return {s};
  }
  std::vector<std::size_t> steps;
  for (std::size_t s = 0; s < goal_->steps().size(); ++s) {
    if (taken_[s]) continue;
    const Step& step = goal_->steps()[s];
    const auto missing = [&](CoordinateId id) {
      return id != kNoCoordinate && now_[static_cast<std::size_t>(id)] == kNoCoordinate;
    };
    bool waits = missing(step.in[0]) || missing(step.in[1]);
    for (const WeightDim& dim : step.dims) waits = waits || missing(dim.coordinate);
    for (std::size_t other = 0; other < goal_->steps().size() && !waits; ++other) {
      if (taken_[other] || other == s) continue;
      for (const WeightDim& dim : goal_->steps()[other].dims)
        waits = waits || dim.coordinate == step.in[0] || dim.coordinate == step.in[1];
    }
    if (!waits) steps.push_back(s);
  }
  return steps;
}

Step StepOrder::translated(std::size_t index, const Graph& graph) const {
  Step result = goal_->steps()[index];
  result.out = {kNoCoordinate, kNoCoordinate};
  for (CoordinateId& id : result.in) {
    if (id != kNoCoordinate) id = now(id);
  }
  for (WeightDim& dim : result.dims) {
    bool leaves = false;
    bool held_later = false;
    for (std::size_t other = 0; other < goal_->steps().size(); ++other) {
      for (const WeightDim& shared : goal_->steps()[other].dims) {
        if (shared.coordinate != dim.coordinate) continue;
        leaves = leaves || shared.role != WeightRole::kKeep;
        held_later = held_later || (other != index && !taken_[other]);
      }
    }
    dim.coordinate = now(dim.coordinate);
    dim.role = !leaves || held_later                    ? WeightRole::kKeep
               : graph.weight_count(dim.coordinate) > 0 ? WeightRole::kJoin
                                                        : WeightRole::kDrop;
  }
  return result;
}

void StepOrder::take(std::size_t index, const Step& applied) {
  const Step& original = goal_->steps()[index];
  taken_[index] = true;
  ++count_;
  for (std::size_t i = 0; i < 2; ++i) {
    if (original.out[i] != kNoCoordinate)
      now_[static_cast<std::size_t>(original.out[i])] = applied.out[i];
  }
}

void StepOrder::undo(std::size_t index) {
  for (const CoordinateId id : goal_->steps()[index].out) {
    if (id != kNoCoordinate) now_[static_cast<std::size_t>(id)] = kNoCoordinate;
  }
  taken_[index] = false;
  --count_;
}

void StepOrder::rename(const std::vector<CoordinateId>& to) {
  for (CoordinateId& id : now_) {
    if (id != kNoCoordinate) id = to[static_cast<std::size_t>(id)];
  }
}

}  // namespace syno
