#include "syno/graph/graph.h"

#include <algorithm>
#include <limits>

#include "syno/support/error.h"

namespace syno {
namespace {

// Coordinates are numbered by 16-bit integers; an operator of this many steps is far beyond any search.
constexpr std::size_t kMaxSteps = 4096;

}  // namespace

bool Weight::holds(CoordinateId id) const {
  return std::find(dims.begin(), dims.end(), id) != dims.end();
}

Graph::Graph(VariablesPtr variables, Shape output)
    : variables_(std::move(variables)), output_(std::move(output)) {
  for (std::size_t i = 0; i < output_.size(); ++i) {
    coordinates_.push_back({output_[i].size, -1, static_cast<std::int16_t>(i)});
    frontier_.push_back(static_cast<CoordinateId>(i));
  }
}

bool Graph::in_frontier(CoordinateId id) const {
  return std::binary_search(frontier_.begin(), frontier_.end(), id);
}

const Step* Graph::producer(CoordinateId id) const {
  const std::int16_t step = coordinate(id).step;
  return step < 0 ? nullptr : &steps_[static_cast<std::size_t>(step)];
}

bool Graph::is_reduction(CoordinateId id) const {
  const Step* step = producer(id);
  return step != nullptr && step->primitive == Primitive::kReduce;
}

bool Graph::reductions_only(CoordinateId id) const {
  const Step* step = producer(id);
  if (step == nullptr) return false;
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate && !reductions_only(in)) return false;
  }
  return true;
}

int Graph::share_count(CoordinateId id) const {
  int count = 0;
  for (const Weight& weight : weights_) count += weight.holds(id);
  return count;
}

int Graph::newest_weight(CoordinateId id) const {
  for (int i = static_cast<int>(weights_.size()) - 1; i >= 0; --i) {
    if (weights_[static_cast<std::size_t>(i)].holds(id)) return i;
  }
  return -1;
}

std::array<int, kPrimitiveCount> Graph::primitive_counts() const {
  std::array<int, kPrimitiveCount> counts{};
  for (const Step& step : steps_) ++counts[static_cast<std::size_t>(step.primitive)];
  return counts;
}

std::string Graph::name(CoordinateId id) const {
  if (is_iterator(id)) return "o" + std::to_string(coordinate(id).index);
  const bool reduction = is_reduction(id);
  int number = 0;
  for (CoordinateId other = 0; other < id; ++other) {
    number += !is_iterator(other) && is_reduction(other) == reduction;
  }
  return (reduction ? "r" : "c") + std::to_string(number);
}

void Graph::fail(const Step& step, const std::string& message) const {
  throw Complaint(message)
      .where("step " + std::to_string(steps_.size() + 1) + " (" +
             std::string(primitive_info(step.primitive).name) + ")")
      .error();
}

void Graph::take(CoordinateId id, const Step& step) {
  if (id < 0 || static_cast<std::size_t>(id) >= coordinates_.size())
    fail(step, "a coordinate is missing");
  const auto place = std::lower_bound(frontier_.begin(), frontier_.end(), id);
  if (place == frontier_.end() || *place != id) {
    fail(step,
         "coordinate '" + name(id) + "' is not in the frontier: a step has consumed it already");
  }
  frontier_.erase(place);
}

const Step& Graph::apply(Step step) {
  if (steps_.size() >= kMaxSteps)
    fail(step, "a graph has at most " + std::to_string(kMaxSteps) + " steps");
  const PrimitiveInfo& info = primitive_info(step.primitive);
  const std::vector<CoordinateId> frontier_before = frontier_;
  std::array<Size, 2> in;
  try {
    for (int i = 0; i < info.consumes; ++i) {
      const CoordinateId id = step.in[static_cast<std::size_t>(i)];
      take(id, step);
      in[static_cast<std::size_t>(i)] = extent(id);
    }
    if (step.primitive == Primitive::kShare) {
      if (step.dims.empty()) fail(step, "a contraction shares at least one coordinate");
      std::sort(step.dims.begin(), step.dims.end(),
                [](const SharedDim& a, const SharedDim& b) { return a.coordinate < b.coordinate; });
      Weight weight;
      weight.step = static_cast<std::int16_t>(steps_.size());
      for (const SharedDim& dim : step.dims) {
        take(dim.coordinate, step);
        const bool held = share_count(dim.coordinate) > 0;
        if (dim.role == ShareRole::kDrop && held) {
          fail(step, "coordinate '" + name(dim.coordinate) +
                         "' is in an earlier weight: its role is 'join', not 'drop'");
        }
        if (dim.role == ShareRole::kJoin && !held) {
          fail(step, "coordinate '" + name(dim.coordinate) +
                         "' is in no earlier weight: its role is 'drop', not 'join'");
        }
        weight.dims.push_back(dim.coordinate);
      }
      weights_.push_back(std::move(weight));
      for (const SharedDim& dim : step.dims) {
        if (dim.role != ShareRole::kKeep) continue;
        frontier_.insert(std::lower_bound(frontier_.begin(), frontier_.end(), dim.coordinate),
                         dim.coordinate);
      }
    }
    if (step.primitive == Primitive::kShift && step.amount == 0)
      fail(step, "a shift by 0 does nothing");
    if ((step.primitive == Primitive::kMerge || step.primitive == Primitive::kStride ||
         step.primitive == Primitive::kReduce) &&
        step.size.is_one()) {
      fail(step, "a size of 1 does nothing here");
    }
    const std::array<Size, 2> out =
        info.extents(step, {in.data(), static_cast<std::size_t>(info.consumes)});
    for (int i = 0; i < info.produces; ++i) {
      const auto id = static_cast<CoordinateId>(coordinates_.size());
      coordinates_.push_back({out[static_cast<std::size_t>(i)],
                              static_cast<std::int16_t>(steps_.size()),
                              static_cast<std::int16_t>(i)});
      frontier_.push_back(id);
      step.out[static_cast<std::size_t>(i)] = id;
    }
  } catch (...) {
    frontier_ = frontier_before;
    if (!weights_.empty() && weights_.back().step == static_cast<std::int16_t>(steps_.size()))
      weights_.pop_back();
    throw;
  }
  steps_.push_back(std::move(step));
  return steps_.back();
}

Graph Graph::in_table(const VariablesPtr& variables) const {
  Graph result = *this;
  result.variables_ = variables;
  for (Dimension& dim : result.output_) dim.size = dim.size.translate(*variables_, *variables);
  for (Coordinate& coordinate : result.coordinates_) {
    coordinate.extent = coordinate.extent.translate(*variables_, *variables);
  }
  for (Step& step : result.steps_) step.size = step.size.translate(*variables_, *variables);
  return result;
}

bool operator==(const Graph& a, const Graph& b) {
  const bool same_table = a.variables_ == b.variables_ ||
                          (a.variables_ && b.variables_ && *a.variables_ == *b.variables_);
  return same_table && a.output_ == b.output_ && a.steps_ == b.steps_;
}

}  // namespace syno
