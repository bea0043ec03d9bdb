// Runs loop nests element by element, in exact integers, for tests. It reads what loop_nest.h says and nothing else.
#pragma once

#include <gtest/gtest.h>
#include <vector>

#include "syno/interp/tensor.h"
#include "syno/plan/loop_nest.h"

namespace syno {

using Exact = Tensor<std::int64_t>;

inline bool next(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& extents) {
  for (std::size_t d = index.size(); d-- > 0;) {
    if (++index[d] < extents[d]) return true;
    index[d] = 0;
  }
  return false;
}

// Where an access reads; -1 where a condition fails.
inline std::int64_t position(const Access& access, const Buffer& buffer,
                             const std::vector<std::int64_t>& axes) {
  for (const Condition& condition : access.conditions) {
    const std::int64_t value = condition.index.evaluate(axes);
    if (value < 0 || value >= condition.extent) return -1;
  }
  EXPECT_EQ(access.index.size(), buffer.shape.size());
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const std::int64_t value = access.index[d].evaluate(axes);
    EXPECT_GE(value, 0);
    EXPECT_LT(value, buffer.shape[d]);
    flat = flat * buffer.shape[d] + value;
  }
  return flat;
}

// What every buffer holds in the end. dy: for programs of gradients.
inline std::vector<Exact> run_all(const LoopProgram& program, const Exact& x,
                                  const std::vector<Exact>& weights, const Exact& dy = {}) {
  std::vector<Exact> tensors;
  for (const Buffer& buffer : program.buffers) {
    tensors.push_back(zeros<std::int64_t>(buffer.shape));
    if (buffer.kind == BufferKind::kInput) tensors.back() = x;
    if (buffer.kind == BufferKind::kOutputGradient) tensors.back() = dy;
    if (buffer.kind == BufferKind::kWeight)
      tensors.back() = weights[static_cast<std::size_t>(buffer.number)];
  }
  for (const LoopNest& nest : program.nests) {
    const std::vector<std::int64_t> extents = nest.extents();
    std::vector<std::int64_t> axes(extents.size(), 0);
    Exact& result = tensors[static_cast<std::size_t>(nest.store.buffer)];
    std::vector<std::int64_t> stored(result.data.size(), 0);
    do {
      std::int64_t term = nest.scale;
      for (const Access& operand : nest.operands) {
        const auto from = static_cast<std::size_t>(operand.buffer);
        const std::int64_t at = position(operand, program.buffers[from], axes);
        term = at < 0 ? 0 : term * tensors[from].data[static_cast<std::size_t>(at)];
        if (at < 0) break;
      }
      const auto to =
          static_cast<std::size_t>(position(nest.store, program.buffer(nest.store.buffer), axes));
      result.data[to] += term;
      ++stored[to];
    } while (next(axes, extents));
    std::int64_t terms = 1;
    for (std::size_t a = nest.outputs; a < extents.size(); ++a) terms *= extents[a];
    for (const std::int64_t times : stored) EXPECT_EQ(times, terms) << program.text();
  }
  return tensors;
}

inline Exact run(const LoopProgram& program, const Exact& x, const std::vector<Exact>& weights) {
  return run_all(program, x, weights)[static_cast<std::size_t>(program.output)];
}

}  // namespace syno
