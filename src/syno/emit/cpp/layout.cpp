#include "syno/emit/cpp/layout.h"

#include <algorithm>

#include "syno/emit/cpp/contraction.h"
#include "syno/emit/cpp/lanes.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"

namespace syno::cpp {
namespace {

// Fewer lanes than this are no vector.
constexpr std::int64_t kLeastLanes = 7;

// The axis of the producer that is dimension d, or -1.
int axis_of(const LoopNest& producer, std::size_t dimension) {
  return producer.store.index[dimension].only_axis();
}

// What it costs to have lanes over the axis, of one vector of each operand.
int cost_of_lane(const LoopProgram& program, const LoopNest& nest, int axis) {
  int cost = nest.axes[at(axis)].extent < kLeastLanes ? 8 : 0;
  for (std::size_t o = 0; o < nest.operands.size(); ++o) {
    const bool packed = program.buffer(nest.operands[o].buffer).from_weights;
    switch (lanes_of(program, nest, axis, o)) {
      case Lanes::kPlain: break;
      case Lanes::kPartial: cost += packed ? 0 : 1; break;
      case Lanes::kScattered: cost += packed ? 1 : 4; break;
    }
  }
  return cost;
}

// The axis of the consumer that its vectors probably lie over, or -1.
int lane_of(const LoopProgram& program, const LoopNest& consumer) {
  const Index stored = flat_address(program, consumer, consumer.store);
  for (std::size_t a = 0; a < consumer.outputs; ++a) {
    const int axis = static_cast<int>(a);
    const bool alone =
        std::none_of(stored.terms().begin(), stored.terms().end(), [&](const Index::Term& term) {
          return term.kind != Index::Kind::kAxis && term.coefficient != 1 &&
                 term.of->depends_on(axis);
        });
    std::int64_t step = stored.coefficient(axis);
    for (const Index::Term& term : stored.terms()) {
      if (term.kind == Index::Kind::kRemainder && term.of->coefficient(axis) == 1)
        step = term.coefficient;
    }
    if (alone && step == 1 && consumer.axes[a].extent >= kLeastLanes) return axis;
  }
  return -1;
}

// The dimension that alone depends on the consumer's lane; the number of dimensions when there is none.
std::size_t wanted_by(const LoopProgram& program, const LoopNest& consumer, int buffer) {
  const std::size_t none = program.buffer(buffer).shape.size();
  const int lane = lane_of(program, consumer);
  if (lane < 0) return none;
  std::size_t wanted = none;
  for (const Access& operand : consumer.operands) {
    if (operand.buffer != buffer) continue;
    for (std::size_t d = 0; d < operand.index.size(); ++d) {
      if (!operand.index[d].depends_on(lane)) continue;
      if (wanted != none) return none;
      wanted = d;
    }
  }
  return wanted;
}

}  // namespace

std::vector<std::size_t> layout(const LoopProgram& program, const LoopNest& producer,
                                const LoopNest& consumer, std::int64_t cache_floats) {
  const int buffer = producer.store.buffer;
  const std::size_t rank = producer.store.index.size();
  // Dimension 0 of a batch stays where it is.
  const std::size_t first = program.batched && !program.buffer(buffer).from_weights ? 1 : 0;
  for (std::size_t d = first; d < rank; ++d) {
    if (axis_of(producer, d) < 0 && !producer.store.index[d].is_constant()) return {};
  }
  const std::size_t wanted = wanted_by(program, consumer, buffer);
  const bool is_contraction =
      match_contraction(program, merged(program, producer), cache_floats).has_value();
  std::size_t last = rank;
  if (is_contraction) {
    last = wanted;
  } else {
    int least = 0;
    for (std::size_t d = first; d < rank; ++d) {
      const int axis = axis_of(producer, d);
      if (axis < 0) continue;
      const int cost = 2 * cost_of_lane(program, producer, axis) + (d == wanted ? 0 : 1) +
                       (d + 1 == rank ? 0 : 1);
      if (last == rank || cost < least) {
        last = d;
        least = cost;
      }
    }
  }
  if (last == rank || last + 1 == rank || last < first) return {};
  // Axes of weights outside, so that those of the data are columns side by side.
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < first; ++d) order.push_back(d);
  const auto in_weights = [&](std::size_t d) {
    const int axis = axis_of(producer, d);
    return axis >= 0 &&
           std::any_of(producer.operands.begin(), producer.operands.end(), [&](const Access& read) {
             return program.buffer(read.buffer).from_weights && depends_on(read, axis);
           });
  };
  for (const bool weights : {true, false}) {
    for (std::size_t d = first; d < rank; ++d) {
      if (d != last && in_weights(d) == weights) order.push_back(d);
    }
  }
  order.push_back(last);
  return order;
}

std::vector<std::size_t> layout_of_codes(const LoopProgram& program, const LoopNest& producer,
                                         const LoopNest& consumer) {
  const int buffer = producer.store.buffer;
  const std::size_t rank = producer.store.index.size();
  const std::size_t first = program.batched ? 1 : 0;
  const auto read = std::find_if(consumer.operands.begin(), consumer.operands.end(),
                                 [&](const Access& each) { return each.buffer == buffer; });
  // Whether the consumer has an axis that is this dimension and nothing else.
  const auto is_plain = [&](std::size_t d) {
    const int axis = read->index[d].only_axis();
    if (axis < 0) return false;
    for (std::size_t other = 0; other < rank; ++other) {
      if (other != d && read->index[other].depends_on(axis)) return false;
    }
    return true;
  };
  // 0: of the data; 1: of the weights, and elsewhere in what the consumer reads; 2: of both; 3: of the weights alone.
  const auto place = [&](std::size_t d) {
    const int axis = axis_of(producer, d);
    if (axis < 0) return 0;
    bool in_data = false;
    bool in_weights = false;
    for (const Access& operand : producer.operands) {
      if (!depends_on(operand, axis)) continue;
      (program.buffer(operand.buffer).from_weights ? in_weights : in_data) = true;
    }
    return !in_weights ? 0 : !is_plain(d) ? 1 : in_data ? 2 : 3;
  };
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < rank; ++d) order.push_back(d);
  std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                   [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  return order;
}

}  // namespace syno::cpp
