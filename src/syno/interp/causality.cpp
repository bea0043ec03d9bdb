#include "syno/interp/causality.h"

#include <algorithm>
#include <optional>

#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/random.h"

namespace syno {
namespace {

// An upper bound of (read - position) over all unmasked points.
std::int64_t lead_bound(const AccessMap& map, const Program& program, CoordinateId position,
                        CoordinateId read) {
  std::vector<std::int64_t> bounds;
  for (std::size_t i = 0; i < map.expressions.size(); ++i) {
    const auto id = static_cast<CoordinateId>(i);
    const Expression& expression = map.at(id);
    // A value is at most its extent - 1, a position at least 0.
    std::int64_t bound = id == position ? 0 : program.extent(id) - 1;
    if (is_masked(expression.kind)) {
      const std::int64_t window = program.extent(expression.b);
      const std::int64_t before = expression.causal ? window - 1 : window / 2;
      // Either side may carry the position; the other one adds at most its extent - 1.
      const std::int64_t a = bounds[static_cast<std::size_t>(expression.a)] + window - 1;
      const std::int64_t b =
          bounds[static_cast<std::size_t>(expression.b)] + program.extent(expression.a) - 1;
      bound = std::min({bound, a - before, b - before});
    }
    bounds.push_back(bound);
  }
  return bounds[static_cast<std::size_t>(read)];
}

const Component& part_of(const std::vector<Component>& parts, CoordinateId id) {
  for (const Component& part : parts) {
    if (part.holds(id)) return part;
  }
  throw InternalError("part_of: a coordinate is in no component");
}

// The least or greatest value of `id` at an unmasked point of its component; nothing when there is none, or when there
// are too many points to look at.
std::optional<std::int64_t> extreme(const Component& part, const Program& program, CoordinateId id,
                                    bool greatest) {
  if (!box(program, part.leaves)) return std::nullopt;
  const std::vector<Instruction> steps = instructions(program, part);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  std::optional<std::int64_t> result;
  InterruptPoll poll;
  do {
    poll();
    if (!execute(steps, slots)) continue;
    const std::int64_t value = slots[static_cast<std::size_t>(id)];
    if (!result || (greatest ? value > *result : value < *result)) result = value;
  } while (next_index(part.leaves, program.extents, slots));
  return result;
}

// Where the input position has nothing to do with the output position, every output reads what any output reads.
FutureReads independent_reads(const Component& positions, const Component& reads,
                              const Program& program, CoordinateId position, CoordinateId read) {
  // Without a Stride every value of `read` is taken (coverage.h); without a window every position is unmasked.
  const bool free_read = !reads.strided;
  const bool free_position = positions.coordinates.size() == positions.leaves.size();
  const auto last =
      free_read ? std::optional(program.extent(read) - 1) : extreme(reads, program, read, true);
  const auto first =
      free_position ? std::optional(std::int64_t{0}) : extreme(positions, program, position, false);
  if ((!last && !box(program, reads.leaves)) || (!first && !box(program, positions.leaves)))
    return {Decision::kUndecided, 0, 0};
  if (!last || !first || *last <= *first) return {};
  return {Decision::kYes, *first, *last};
}

}  // namespace

std::vector<std::pair<int, int>> causal_pairs(const Operator& op) {
  return causal_pairs(op.output(), op.input(), *op.variables());
}

std::vector<std::pair<int, int>> causal_pairs(const Shape& output, const Shape& input,
                                              const Variables& variables) {
  const auto marked = [](const Shape& shape) {
    std::vector<int> dims;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].causal) dims.push_back(static_cast<int>(d));
    }
    return dims;
  };
  const std::vector<int> outputs = marked(output);
  const std::vector<int> inputs = marked(input);
  if (outputs.size() != inputs.size()) {
    throw Complaint("causal dimensions do not pair up")
        .where(shape_text(input, variables) + " -> " + shape_text(output, variables))
        .expected("as many in the input as in the output",
                  std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()))
        .error();
  }
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < outputs.size(); ++i) pairs.emplace_back(outputs[i], inputs[i]);
  return pairs;
}

FutureReads future_reads(const std::vector<Component>& parts, const AccessMap& map,
                         const Program& program, int output_dim, int input_dim) {
  const CoordinateId position = map.iterators[static_cast<std::size_t>(output_dim)];
  const CoordinateId read = map.data[static_cast<std::size_t>(input_dim)];
  FutureReads result;
  if (lead_bound(map, program, position, read) <= 0) return result;

  // Other components only decide whether anything is read at all; where nothing is, output_constant says so.
  const Component& part = part_of(parts, read);
  if (!part.holds(position))
    return independent_reads(part_of(parts, position), part, program, position, read);
  const std::vector<Instruction> steps = instructions(program, part);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  InterruptPoll poll;
  const auto leaks = [&] {
    poll();
    if (!execute(steps, slots)) return false;
    result.output_position = slots[static_cast<std::size_t>(position)];
    result.input_position = slots[static_cast<std::size_t>(read)];
    return result.input_position > result.output_position;
  };
  if (box(program, part.leaves)) {
    do {
      if (leaks()) {
        result.found = Decision::kYes;
        return result;
      }
    } while (next_index(part.leaves, program.extents, slots));
    return {};
  }
  // Too many points to look at all: a leak that is usual is found among a few thousand.
  constexpr int kSamples = 4096;
  CounterRandom random(0, 0);
  for (int sample = 0; sample < kSamples; ++sample) {
    for (const CoordinateId id : part.leaves) {
      slots[static_cast<std::size_t>(id)] =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(program.extent(id))));
    }
    if (leaks()) {
      result.found = Decision::kYes;
      return result;
    }
  }
  return {Decision::kUndecided, 0, 0};
}

FutureReads future_reads(const Operator& op, const Values& values, int output_dim, int input_dim) {
  const AccessMap map = make_access_map(op);
  return future_reads(components(map), map, Program(map, values), output_dim, input_dim);
}

std::string in_words(const FutureReads& found, int output_dim, int input_dim) {
  switch (found.found) {
    case Decision::kNo: return "";
    case Decision::kYes:
      return "output position " + std::to_string(found.output_position) + " of dimension " +
             std::to_string(output_dim) + " reads input position " +
             std::to_string(found.input_position) + " of dimension " + std::to_string(input_dim);
    case Decision::kUndecided: break;
  }
  return "cannot decide whether dimension " + std::to_string(output_dim) +
         " reads the future: too many points to check";
}

}  // namespace syno
