#include "syno/search/steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "syno/support/error.h"

namespace syno {
namespace {

std::uint64_t word(const Hasher& hasher) {
  return hasher.finish().low;
}

class Labels {
 public:
  explicit Labels(const Operator& op) : op_(op), graph_(op.graph()) {}

  LabeledSteps all() {
    start();
    for (std::size_t i = 0; i < graph_.steps().size(); ++i) add(graph_.steps()[i], i);
    add_match();
    add_context();
    return sorted();
  }

 private:
  // What is known of a coordinate of the frontier.
  struct Line {
    std::uint64_t label = 0;
    // The steps that made it or kept it in a weight.
    std::uint64_t touched = 0;
  };

  std::uint64_t size_word(const Size& size) const {
    return word(Hasher("size").add(size.text(*graph_.variables())));
  }
  Line& line(CoordinateId id) { return lines_[static_cast<std::size_t>(id)]; }

  void start() {
    lines_.resize(graph_.coordinates().size());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Coordinate& coordinate = graph_.coordinates()[i];
      if (coordinate.step < 0) lines_[i].label = word(Hasher("output").add(coordinate.index));
    }
  }

  void add(const Step& step, std::size_t number) {
    LabeledStep made;
    made.kind = static_cast<std::uint8_t>(step.primitive);
    Hasher own("step");
    own.add(made.kind).add(size_word(step.size)).add(step.amount).add(int{step.causal});
    Hasher whole("from output");
    std::vector<std::uint64_t> taken;
    for (const CoordinateId id : step.in) {
      if (id == kNoCoordinate) continue;
      own.add(size_word(graph_.extent(id)));
      whole.add(line(id).label);
      made.needs |= line(id).touched;
    }
    for (const WeightDim& dim : step.dims) {
      taken.push_back(word(Hasher("dim")
                               .add(static_cast<int>(dim.role))
                               .add(size_word(graph_.extent(dim.coordinate)))));
      made.needs |= line(dim.coordinate).touched;
    }
    std::sort(taken.begin(), taken.end());
    for (const std::uint64_t dim : taken) own.add(dim);
    std::vector<std::uint64_t> lines;
    for (const WeightDim& dim : step.dims)
      lines.push_back(
          word(Hasher("line").add(static_cast<int>(dim.role)).add(line(dim.coordinate).label)));
    std::sort(lines.begin(), lines.end());
    for (const std::uint64_t each : lines) whole.add(each);
    made.label = word(own);
    made.from_output = word(whole.add(made.label));
    const std::uint64_t bit = std::uint64_t{1} << number;
    for (const WeightDim& dim : step.dims) {
      if (dim.role != WeightRole::kKeep) continue;
      Line& kept = line(dim.coordinate);
      kept.label = word(Hasher("kept").add(kept.label).add(made.from_output));
      kept.touched |= bit;
    }
    for (std::size_t i = 0; i < step.out.size(); ++i) {
      if (step.out[i] == kNoCoordinate) continue;
      line(step.out[i]) = {word(Hasher("made").add(made.from_output).add(static_cast<int>(i))),
                           made.needs | bit};
    }
    steps_.push_back(made);
  }

  void add_match() {
    LabeledStep made;
    made.kind = kMatchStep;
    made.label = word(Hasher("match"));
    Hasher whole("from output");
    for (const CoordinateId id : op_.match()) whole.add(line(id).label);
    made.from_output = word(whole.add(made.label));
    made.needs = (std::uint64_t{1} << steps_.size()) - 1;
    steps_.push_back(made);
  }

  // The label of what makes a coordinate: a step, or an output iterator.
  std::uint64_t maker(CoordinateId id) const {
    const Coordinate& coordinate = graph_.coordinate(id);
    const std::uint64_t from = coordinate.step < 0
                                   ? word(Hasher("output").add(coordinate.index))
                                   : steps_[static_cast<std::size_t>(coordinate.step)].label;
    return word(Hasher("maker").add(from).add(coordinate.step < 0 ? 0 : coordinate.index));
  }

  void add_context() {
    std::vector<std::vector<std::uint64_t>> around(steps_.size());
    // A coordinate connects the step that made it with those that take or keep it.
    const auto connect = [&](std::size_t user, CoordinateId id, int how) {
      around[user].push_back(word(Hasher("takes").add(how).add(maker(id))));
      const std::int16_t made_by = graph_.coordinate(id).step;
      if (made_by >= 0)
        around[static_cast<std::size_t>(made_by)].push_back(word(
            Hasher("taken").add(how).add(graph_.coordinate(id).index).add(steps_[user].label)));
    };
    for (std::size_t i = 0; i < graph_.steps().size(); ++i) {
      const Step& step = graph_.steps()[i];
      for (std::size_t slot = 0; slot < step.in.size(); ++slot)
        if (step.in[slot] != kNoCoordinate) connect(i, step.in[slot], static_cast<int>(slot));
      for (const WeightDim& dim : step.dims)
        connect(i, dim.coordinate, 8 + static_cast<int>(dim.role));
    }
    for (std::size_t d = 0; d < op_.match().size(); ++d)
      connect(steps_.size() - 1, op_.match()[d], 16 + static_cast<int>(d));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      std::sort(around[i].begin(), around[i].end());
      Hasher context("context");
      context.add(steps_[i].label);
      for (const std::uint64_t each : around[i]) context.add(each);
      steps_[i].in_context = word(context);
    }
  }

  LabeledSteps sorted() const {
    std::vector<std::size_t> order(steps_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // The matching is no step of the graph.
    const auto reduces = [&](std::size_t i) {
      return i < graph_.steps().size() && graph_.steps()[i].is_reduction();
    };
    // Other steps stay behind those that they need.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (reduces(a) != reduces(b)) return reduces(a);
      return reduces(a) && steps_[a].label < steps_[b].label;
    });
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    LabeledSteps result;
    std::uint64_t reductions = 0;
    for (const std::size_t i : order) {
      LabeledStep step = steps_[i];
      step.needs = reductions;
      for (std::size_t before = 0; before < place.size(); ++before)
        if ((steps_[i].needs >> before & 1U) != 0) step.needs |= std::uint64_t{1} << place[before];
      if (reduces(i)) reductions |= std::uint64_t{1} << result.size();
      result.push_back(step);
    }
    return result;
  }

  const Operator& op_;
  const Graph& graph_;
  std::vector<Line> lines_;
  LabeledSteps steps_;
};

}  // namespace

LabeledSteps labeled_steps(const Operator& op) {
  constexpr std::size_t kMostSteps = 63;
  if (op.graph().steps().size() >= kMostSteps) {
    throw Complaint("a search method cannot work with an operator of " +
                    std::to_string(op.graph().steps().size()) + " steps")
        .expected("fewer than " + std::to_string(kMostSteps), op.text())
        .hint("lower max_depth")
        .error();
  }
  return Labels(op).all();
}

}  // namespace syno
