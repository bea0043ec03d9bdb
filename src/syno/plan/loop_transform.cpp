#include "syno/plan/loop_transform.h"

#include <algorithm>

#include "syno/support/at.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// How many quotients and remainders an index has.
std::size_t parts_in(const Index& index) {
  std::size_t count = 0;
  for (const Index::Term& term : index.terms()) {
    if (term.kind != Index::Kind::kAxis) count += 1 + parts_in(*term.of);
  }
  return count;
}

std::size_t parts_in(const LoopProgram& program, const LoopNest& nest) {
  std::size_t count = 0;
  const auto add = [&](const Access& access) {
    count += parts_in(flat_address(program, nest, access));
    for (const Condition& condition : access.conditions) count += parts_in(condition.index);
  };
  add(nest.store);
  for (const Access& operand : nest.operands) add(operand);
  return count;
}

}  // namespace

Access substituted(const Access& access, const std::vector<std::int64_t>& extents,
                   const std::vector<Index>& values) {
  Indices indices(extents);
  for (const Condition& condition : access.conditions)
    indices.assume({indices.substitute(condition.index, values), condition.extent});
  Access result{access.buffer, {}, {}};
  for (const Index& index : access.index) result.index.push_back(indices.substitute(index, values));
  result.conditions = indices.conditions();
  return result;
}

LoopNest with_axes(const LoopNest& nest, std::vector<LoopAxis> axes, std::size_t outputs,
                   const std::vector<Index>& values) {
  LoopNest result;
  result.axes = std::move(axes);
  result.outputs = outputs;
  result.scale = nest.scale;
  const std::vector<std::int64_t> extents = result.extents();
  result.store = substituted(nest.store, extents, values);
  for (const Access& operand : nest.operands)
    result.operands.push_back(substituted(operand, extents, values));
  return result;
}

void permute_buffer(LoopProgram& program, int buffer, const std::vector<std::size_t>& order) {
  const auto moved = [&](auto& values) {
    const auto old = values;
    for (std::size_t d = 0; d < order.size(); ++d) values[d] = old[order[d]];
  };
  moved(program.buffers[at(buffer)].shape);
  for (LoopNest& nest : program.nests) {
    if (nest.store.buffer == buffer) moved(nest.store.index);
    for (Access& operand : nest.operands) {
      if (operand.buffer == buffer) moved(operand.index);
    }
  }
}

LoopNest split_axis(const LoopNest& nest, int axis, std::int64_t block) {
  std::vector<LoopAxis> axes = nest.axes;
  axes[at(axis)].extent /= block;
  axes.insert(axes.begin() + axis + 1, {axes[at(axis)].name, block, false});
  std::vector<Index> values;
  for (int a = 0; a < static_cast<int>(nest.axes.size()); ++a) {
    values.push_back(a == axis ? Index::axis(axis) * block + Index::axis(axis + 1)
                               : Index::axis(a + (a > axis ? 1 : 0)));
  }
  return with_axes(nest, std::move(axes), nest.outputs + (at(axis) < nest.outputs ? 1 : 0), values);
}

LoopNest joined_axes(const LoopNest& nest, int outer, int inner, int stays) {
  std::vector<LoopAxis> axes = nest.axes;
  const std::int64_t block = axes[at(inner)].extent;
  axes[at(stays)].extent = checked_multiply(axes[at(outer)].extent, block, "an axis");
  const int gone = stays == outer ? inner : outer;
  axes.erase(axes.begin() + gone);
  std::vector<std::int64_t> extents;
  for (const LoopAxis& axis : axes) extents.push_back(axis.extent);
  const Indices indices(std::move(extents));
  const auto place = [&](int old) { return Index::axis(old - (old > gone ? 1 : 0)); };
  std::vector<Index> values;
  for (int a = 0; a < static_cast<int>(nest.axes.size()); ++a) {
    values.push_back(a == outer   ? indices.quotient(place(stays), block)
                     : a == inner ? indices.remainder(place(stays), block)
                                  : place(a));
  }
  return with_axes(nest, std::move(axes), nest.outputs - (at(gone) < nest.outputs ? 1 : 0), values);
}

namespace {

LoopNest without_axis(const LoopNest& nest, std::size_t gone) {
  std::vector<LoopAxis> axes = nest.axes;
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(gone));
  std::vector<Index> values;
  for (std::size_t a = 0; a < nest.axes.size(); ++a)
    values.push_back(a == gone ? Index() : Index::axis(static_cast<int>(a - (a > gone ? 1 : 0))));
  return with_axes(nest, std::move(axes), nest.outputs - (gone < nest.outputs ? 1 : 0), values);
}

}  // namespace

LoopNest without_batch(const LoopProgram& program, const LoopNest& nest) {
  if (!program.batched || program.buffer(nest.store.buffer).from_weights) return nest;
  ensure(!nest.store.index.empty() && nest.store.index[0].terms().size() == 1,
         "without_batch: the store has no batch");
  return without_axis(nest, at(nest.store.index[0].terms()[0].axis));
}

LoopNest unrotated(const LoopNest& nest) {
  const Indices indices(nest.extents());
  std::vector<Index> values;
  for (std::size_t a = 0; a < nest.axes.size(); ++a)
    values.push_back(Index::axis(static_cast<int>(a)));
  bool rotates = false;
  for (const Index& stored : nest.store.index) {
    if (stored.terms().size() != 1 || stored.constant() != 0) continue;
    const Index::Term& term = stored.terms()[0];
    if (term.kind != Index::Kind::kRemainder || term.coefficient != 1) continue;
    // (axis + turn) mod extent
    if (term.of->terms().size() != 1 || term.of->terms()[0].kind != Index::Kind::kAxis ||
        term.of->terms()[0].coefficient != 1)
      continue;
    const int axis = term.of->terms()[0].axis;
    const std::int64_t extent = nest.axes[at(axis)].extent;
    const auto uses = std::count_if(nest.store.index.begin(), nest.store.index.end(),
                                    [&](const Index& index) { return index.depends_on(axis); });
    if (term.divisor != extent || uses != 1) continue;
    values[at(axis)] = indices.remainder(Index::axis(axis) - Index(term.of->constant()), extent);
    rotates = true;
  }
  return rotates ? with_axes(nest, nest.axes, nest.outputs, values) : nest;
}

namespace {

LoopNest merged(const LoopProgram& program, const LoopNest& nest, std::size_t kept, bool sums) {
  LoopNest result = nest;
  for (std::size_t a = result.axes.size(); a-- > kept;) {
    if (result.axes[a].extent == 1) result = without_axis(result, a);
  }
  for (std::size_t outer = kept; outer < result.axes.size(); ++outer) {
    for (std::size_t inner = kept; inner < result.axes.size();) {
      const bool same_kind = (outer < result.outputs) == (inner < result.outputs);
      if (outer != inner && same_kind && (sums || outer < result.outputs)) {
        const int into = static_cast<int>(outer);
        LoopNest together = joined_axes(result, into, static_cast<int>(inner), into);
        if (parts_in(program, together) <= parts_in(program, result)) {
          result = std::move(together);
          if (inner < outer) --outer;
          inner = kept;
          continue;
        }
      }
      ++inner;
    }
  }
  return result;
}

}  // namespace

LoopNest merged(const LoopProgram& program, const LoopNest& nest) {
  return merged(program, nest, 0, true);
}

LoopNest merged_outputs(const LoopProgram& program, const LoopNest& nest, std::size_t kept) {
  return merged(program, nest, kept, false);
}

namespace {

// Whether all axes of the producer that the access asks are in range for all values of the new axes.
bool in_range(const LoopNest& producer, const Access& access, const std::vector<Index>& values,
              const Indices& indices) {
  for (std::size_t a = 0; a < values.size(); ++a) {
    const auto asks = [&](const Index& index) { return index.depends_on(static_cast<int>(a)); };
    const bool asked = std::any_of(access.index.begin(), access.index.end(), asks) ||
                       std::any_of(access.conditions.begin(), access.conditions.end(),
                                   [&](const Condition& c) { return asks(c.index); });
    const Range range = indices.range(values[a]);
    if (asked && (range.least < 0 || range.most >= producer.axes[a].extent)) return false;
  }
  return true;
}

}  // namespace

LoopNest inlined(const LoopNest& consumer, std::size_t operand, const LoopNest& producer) {
  const Access& read = consumer.operands[operand];
  ensure(read.buffer == producer.store.buffer, "inlined: another buffer is read");
  LoopNest result;
  result.axes = consumer.axes;
  result.outputs = consumer.outputs;
  result.store = consumer.store;
  result.scale = checked_multiply(consumer.scale, producer.scale, "a scale");
  // The producer's axes: where the consumer reads, and new ones for what it sums.
  std::vector<Index> values(producer.axes.size());
  for (std::size_t d = 0; d < read.index.size(); ++d) {
    const Index& stored = producer.store.index[d];
    ensure(stored.terms().size() <= 1 && stored.constant() == 0, "inlined: a stored view");
    if (!stored.terms().empty()) values[at(stored.terms()[0].axis)] = read.index[d];
  }
  for (std::size_t a = producer.outputs; a < producer.axes.size(); ++a) {
    values[a] = Index::axis(static_cast<int>(result.axes.size()));
    result.axes.push_back(producer.axes[a]);
  }
  const std::vector<std::int64_t> extents = result.extents();
  for (std::size_t o = 0; o < consumer.operands.size(); ++o) {
    if (o != operand) {
      result.operands.push_back(consumer.operands[o]);
      continue;
    }
    for (std::size_t i = 0; i < producer.operands.size(); ++i) {
      const Access& inner = producer.operands[i];
      // Where the consumer's conditions fail, one factor that is zero is enough; the others need the conditions only
      // where they could not be read.
      Indices indices(extents);
      if (i == 0 || !in_range(producer, inner, values, indices)) {
        for (const Condition& condition : read.conditions) indices.assume(condition);
      }
      for (const Condition& condition : inner.conditions)
        indices.assume({indices.substitute(condition.index, values), condition.extent});
      Access access{inner.buffer, {}, {}};
      for (const Index& index : inner.index)
        access.index.push_back(indices.substitute(index, values));
      access.conditions = indices.conditions();
      result.operands.push_back(std::move(access));
    }
  }
  return result;
}

Index flat_address(const LoopProgram& program, const LoopNest& nest, const Access& access) {
  Indices indices(nest.extents());
  for (const Condition& condition : access.conditions) indices.assume(condition);
  const std::vector<std::int64_t>& shape = program.buffer(access.buffer).shape;
  Index flat;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    flat = flat + access.index[d] * stride;
    stride = checked_multiply(stride, shape[d], "the elements of a tensor");
  }
  return flat;
}

}  // namespace syno
