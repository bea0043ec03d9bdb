#include "syno/graph/graph.h"

#include <algorithm>
#include <functional>
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
    : Graph(std::make_shared<const Frame>(Frame{std::move(variables), std::move(output)})) {}

Graph::Graph(std::shared_ptr<const Frame> frame) : frame_(std::move(frame)) {
  for (std::size_t i = 0; i < output().size(); ++i) {
    Coordinate iterator;
    iterator.extent = output()[i].size;
    iterator.index = static_cast<std::int16_t>(i);
    iterator.causal = output()[i].causal;
    if (output()[i].unordered) iterator.free = static_cast<std::int16_t>(i);
    coordinates_.push_back(iterator);
    frontier_.push_back(static_cast<CoordinateId>(i));
  }
}

Graph Graph::root() const {
  return frame_ == nullptr ? Graph() : Graph(frame_);
}

const Graph::Frame& Graph::frame() const {
  static const Frame kNone;
  return frame_ == nullptr ? kNone : *frame_;
}

bool Graph::in_frontier(CoordinateId id) const {
  return std::binary_search(frontier_.begin(), frontier_.end(), id);
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
      .where("step " + std::to_string(steps_.size() + 1) + " (" + std::string(step.info().name) +
             ")")
      .error();
}

void Graph::check_free(CoordinateId id, const Step& step) const {
  if (id < 0 || static_cast<std::size_t>(id) >= coordinates_.size())
    fail(step, "a coordinate is missing");
  if (!in_frontier(id)) {
    fail(step,
         "coordinate '" + name(id) + "' is not in the frontier: a step has consumed it already");
  }
}

// Everything that can be wrong with a step, before anything is changed.
void Graph::check(const Step& step) const {
  const auto consumed_twice = [&](CoordinateId id) {
    fail(step,
         "coordinate '" + name(id) + "' is not in the frontier: a step has consumed it already");
  };
  const PrimitiveInfo& info = step.info();
  for (int i = 0; i < info.consumes; ++i) check_free(step.in[static_cast<std::size_t>(i)], step);
  if (info.consumes == 2 && step.in[0] == step.in[1]) consumed_twice(step.in[0]);
  if (step.is_contraction()) {
    if (step.dims.empty()) fail(step, "a contraction takes at least one coordinate");
    CoordinateId last = kNoCoordinate;
    for (const WeightDim& dim : step.dims) {
      check_free(dim.coordinate, step);
      if (dim.coordinate == last)
        fail(step, "coordinate '" + name(last) + "' is taken twice by one weight");
      last = dim.coordinate;
      const bool held = weight_count(dim.coordinate) > 0;
      if (dim.role == WeightRole::kDrop && held) {
        fail(step, "coordinate '" + name(dim.coordinate) +
                       "' is in an earlier weight: its role is 'join', not 'drop'");
      }
      if (dim.role == WeightRole::kJoin && !held) {
        fail(step, "coordinate '" + name(dim.coordinate) +
                       "' is in no earlier weight: its role is 'drop', not 'join'");
      }
    }
  }
  if (info.argument == Argument::kAmount && step.amount == 0)
    fail(step, "a " + std::string(info.name) + " by 0 does nothing");
  if (takes_size(info.argument) && step.size.is_one()) fail(step, "a size of 1 does nothing here");
}

// What is one-to-one and onto renumbers what it consumes. A weight that holds some of the digits in a product of two
// coordinates tells them apart from the others; one that holds all of them does not.
std::int16_t Graph::freedom(const Step& step) const {
  const PrimitiveInfo& info = step.info();
  if (info.kind == StepKind::kReduction) return kFreeReduction;
  if (info.relation != Relation::kOnto) return kNotFree;
  const Coordinate& first = coordinate(step.in[0]);
  if (info.consumes == 1) return first.free;
  const Coordinate& second = coordinate(step.in[1]);
  return first.weights == second.weights && first.free == second.free ? first.free : kNotFree;
}

std::array<Size, 2> Graph::extents_made(const Step& step) const {
  const PrimitiveInfo& info = step.info();
  std::array<Size, 2> in;
  for (int j = 0; j < info.consumes; ++j)
    in[static_cast<std::size_t>(j)] = extent(step.in[static_cast<std::size_t>(j)]);
  std::array<Size, 2> made;
  for (std::size_t i = 0; i < static_cast<std::size_t>(info.produces); ++i)
    made[i] =
        extent_made(info.makes[i], in[0], in[1], step.size, std::multiplies<>(), std::divides<>());
  return made;
}

void Graph::add_coordinate(const Step& step, int index, const Size& extent) {
  Coordinate made;
  made.extent = extent;
  made.step = static_cast<std::int16_t>(steps_.size());
  made.index = static_cast<std::int16_t>(index);
  made.reductions_only = true;
  for (int i = 0; i < step.info().consumes; ++i) {
    const Coordinate& from = coordinate(step.in[static_cast<std::size_t>(i)]);
    made.chain = std::max<std::int16_t>(made.chain, static_cast<std::int16_t>(from.chain + 1));
    made.reductions_only = made.reductions_only && from.reductions_only;
    made.causal = made.causal || from.causal;
    made.weights |= from.weights;
  }
  made.free = freedom(step);
  frontier_.push_back(static_cast<CoordinateId>(coordinates_.size()));
  coordinates_.push_back(made);
}

const Step& Graph::apply(Step step) {
  if (steps_.size() >= kMaxSteps)
    fail(step, "a graph has at most " + std::to_string(kMaxSteps) + " steps");
  const PrimitiveInfo& info = step.info();
  std::sort(step.dims.begin(), step.dims.end(),
            [](const WeightDim& a, const WeightDim& b) { return a.coordinate < b.coordinate; });
  check(step);
  const std::array<Size, 2> out = extents_made(step);

  const auto leave = [&](CoordinateId id) {
    frontier_.erase(std::lower_bound(frontier_.begin(), frontier_.end(), id));
  };
  for (int i = 0; i < info.consumes; ++i) leave(step.in[static_cast<std::size_t>(i)]);
  if (step.is_contraction()) {
    Weight& weight = weights_.emplace_back();
    weight.step = static_cast<std::int16_t>(steps_.size());
    for (const WeightDim& dim : step.dims) {
      weight.dims.push_back(dim.coordinate);
      Coordinate& taken = coordinates_[static_cast<std::size_t>(dim.coordinate)];
      ++taken.weight_count;
      constexpr std::size_t kLast = 63;
      taken.weights |= std::uint64_t{1} << std::min(weights_.size() - 1, kLast);
      // Weights that are not told apart are not known to hold the same digits.
      if (weights_.size() > kLast) taken.free = kNotFree;
      if (dim.role != WeightRole::kKeep) leave(dim.coordinate);
    }
  }
  for (int i = 0; i < info.produces; ++i) {
    step.out[static_cast<std::size_t>(i)] = static_cast<CoordinateId>(coordinates_.size());
    add_coordinate(step, i, out[static_cast<std::size_t>(i)]);
  }
  steps_.push_back(std::move(step));
  return steps_.back();
}

Graph Graph::in_table(const VariablesPtr& variables) const {
  Graph result = *this;
  const Variables& from = *frame().variables;
  Shape shape = output();
  for (Dimension& dim : shape) dim.size = dim.size.translate(from, *variables);
  result.frame_ = std::make_shared<const Frame>(Frame{variables, std::move(shape)});
  for (Coordinate& coordinate : result.coordinates_) {
    coordinate.extent = coordinate.extent.translate(from, *variables);
  }
  for (Step& step : result.steps_) step.size = step.size.translate(from, *variables);
  return result;
}

bool operator==(const Graph& a, const Graph& b) {
  const VariablesPtr& table = a.variables();
  const VariablesPtr& other = b.variables();
  const bool same_table = table == other || (table && other && *table == *other);
  return same_table && a.output() == b.output() && a.steps_ == b.steps_;
}

}  // namespace syno
