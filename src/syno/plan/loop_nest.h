// A plan as loop nests: what is left when every view has become index arithmetic.
//
//     store[...](axes) = scale * sum over the summed axes of the product of the operands
//
// A nest is a stage that computes (a contraction, a convolution, a sum), or a copy where the result is a view that
// repeats elements. Its operands are read through the views between, so nothing is materialised but what a nest stores.
// The emitters for C++, Triton and TVM start here; the one for PyTorch takes the stages as they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syno/affine/index.h"
#include "syno/plan/plan.h"

namespace syno {

enum class BufferKind : std::uint8_t {
  kInput,
  kWeight,
  kValue,
  kOutput,
  kOutputGradient,  ///< gradients: adjoint.h
  kInputGradient,
  kWeightGradient,
};

/// A tensor in row-major order.
struct Buffer {
  BufferKind kind = BufferKind::kValue;
  /// Weights and their gradients: their number in canonical order. Values: counted from 0.
  int number = -1;
  std::vector<std::int64_t> shape;
  /// Every element depends on weights alone.
  bool from_weights = false;

  /// "x", "w0", "t3", "y", "dy", "dx", "dw0".
  std::string name() const;
  std::int64_t elements() const;
};

struct LoopAxis {
  std::string name;
  std::int64_t extent = 1;
  /// Any size at run time.
  bool free = false;
};

/// An element of a buffer. Where a condition fails, zero is read instead; later conditions and the index may then have
/// any value, so they are tested in order.
struct Access {
  int buffer = -1;
  std::vector<Index> index;
  std::vector<Condition> conditions;
};

struct LoopNest {
  /// First those of the result, then those that are summed.
  std::vector<LoopAxis> axes;
  std::size_t outputs = 0;
  /// Reaches every element of its buffer exactly once; no conditions.
  Access store;
  std::vector<Access> operands;
  std::int64_t scale = 1;

  std::vector<std::int64_t> extents() const;
  std::vector<std::string> names() const;
  /// Dense: the product of all extents, when two operands are multiplied or anything is summed.
  std::int64_t macs() const;
  /// The MACs without those on zeros that stand for elements outside of a buffer: code may skip them. Dense where
  /// conditions connect axes with more points than can be counted quickly.
  std::int64_t macs_in_bounds() const;
};

struct LoopProgram {
  std::vector<Buffer> buffers;
  std::vector<LoopNest> nests;
  int input = -1;
  std::vector<int> weights;
  int output = -1;
  /// Whether dimension 0 of input and output is free, passes through every nest, and may have any size at run time.
  bool batched = false;

  /// The index of a new buffer.
  int add(Buffer buffer);
  const Buffer& buffer(int index) const { return buffers[static_cast<std::size_t>(index)]; }
  /// The MACs in bounds of the nests that depend on the input.
  std::int64_t macs_in_bounds() const;
  /// "t0[n, g, h, w] = sum(r<4) x[n, 4*g + r, h, w] * w1[4*g + r]", a line a nest.
  std::string text() const;
  /// The line of one of the nests.
  std::string text(const LoopNest& nest) const;
};

/// How the last nest stores its result.
enum class StoreOrder : std::uint8_t {
  kThroughViews,  ///< through one-to-one views behind it, wherever the output has the element
  kByAxes,  ///< indices of a store are axes, each once; views behind a nest become a copy. For languages without scatter.
};

LoopProgram loop_program(const Plan& plan, StoreOrder order = StoreOrder::kThroughViews);

}  // namespace syno
