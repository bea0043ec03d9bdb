// A plan: an operator under one binding as an ordered list of stages over tensors with named dimensions. It holds all
// that an emitter needs; no emitter looks back at the graph.
//
// MACs of a stage = outputs * reductions * max(1, inputs - 1), dense: masks are ignored. A stage that only sums counts
// one a term, a view none. Unless PlanOptions::fold_weights asks for it, no weights are folded into each other: this is
// the plan that trains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/plan/order.h"

namespace syno {

enum class DimRole : std::uint8_t {
  kFree,       ///< passes from the input to the output untouched: any size at run time (a batch)
  kOutput,     ///< an iterator of the output
  kReduction,  ///< summed in some stage
  kDerived,    ///< computed from others: a padded or shifted dimension, a part of one, ...
};

struct PlanDim {
  /// One letter while there are letters left; unique in the plan.
  std::string name;
  /// The extent as a size, such as "s^-1*C_in".
  std::string size;
  std::int64_t extent = 1;
  DimRole role = DimRole::kDerived;
};

enum class TensorKind : std::uint8_t { kInput, kWeight, kValue };

struct PlanTensor {
  TensorKind kind = TensorKind::kValue;
  /// Weights only: their number in canonical order.
  int weight = -1;
  /// Indices into Plan::dims.
  std::vector<int> dims;
};

enum class StageKind : std::uint8_t {
  kPermute,  ///< order[d] is the place in the input of dimension d
  kSplit,    ///< dimension `axis` of extent G*B becomes `axis` of extent G and `axis`+1 of extent B
  kMerge,    ///< dimensions `axis` and `axis`+1 become one
  kRoll,     ///< out[i] = in[(i + amount) mod N] along `axis`
  kSlice,    ///< out[i] = in[amount * i] along `axis`
  kExpand,   ///< a new dimension at `axis`, along which everything is repeated
  kWindow,  ///< out[i, ..., j] = in[i + j - before] or 0; i at `axis`, j is the new last dimension, of extent `amount`
  kShear,   ///< out[i, j] = in[i + j - before, j] or 0; i at `axis`, j at `second_axis`
  kDiagonal,  ///< out[..., j, ..., b] = in[..., j, ...] where b = j, or 0; j at `axis`, b the new last dimension
  kScale,        ///< out = amount * in
  kSum,          ///< sums the dimensions `summed`
  kContraction,  ///< multiplies with `weight` and sums `summed`
  kConvolution,  ///< a contraction whose windows are taken inside of it
};
std::string_view stage_name(StageKind kind);

/// One spatial dimension of a convolution: in[stride*dim + dilation*window - before], or 0. Without a window its kernel has
/// extent 1.
struct SpatialDim {
  int padded = -1;  ///< the input's dimension
  int dim = -1;     ///< the output's dimension
  int window = -1;  ///< the weight's dimension, or -1
  std::int64_t before = 0;
  /// Such that all places of the kernel are in the padded input; below 0 where its end is not read.
  std::int64_t after = 0;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
};

/// Dimensions of a convolution by what they do; together they are all dimensions of the two inputs.
struct ConvolutionDims {
  std::vector<int> batch;         ///< in the data and the output
  std::vector<int> groups;        ///< in the data, the weight and the output
  std::vector<int> in_channels;   ///< in the data and the weight; summed
  std::vector<int> out_channels;  ///< in the weight and the output
  std::vector<SpatialDim> spatial;
};

struct Stage {
  StageKind kind = StageKind::kPermute;
  int input = -1;   ///< index into Plan::tensors
  int weight = -1;  ///< contractions only: the second input
  int output = -1;
  int axis = -1;
  int second_axis = -1;
  std::int64_t amount = 0;
  std::int64_t before = 0;  ///< padding; zeros
  std::int64_t after = 0;
  std::vector<int> order;
  std::vector<int> summed;  ///< indices into Plan::dims
  ConvolutionDims convolution;
  Cost cost;
};

struct Plan {
  std::vector<PlanDim> dims;
  std::vector<PlanTensor> tensors;
  /// Of plans with fold_weights only, else empty: the stages on weights alone, in order, to be run once when the weights
  /// are loaded and before `stages`. They are stages like the others; views and sums whose input is a weight or the
  /// result of an earlier fold stage, and contractions of two such tensors (`input` and `weight`, both from weights).
  /// Their MACs are in fold_macs, not in cost.
  std::vector<Stage> fold_stages;
  std::vector<Stage> stages;
  int input = -1;
  /// The tensors of the weights, in canonical order.
  std::vector<int> weights;
  int output = -1;
  /// For each weight how many terms are summed per element that it helps to make: a weight of variance 1/fan_in keeps the
  /// variance of independent data. Sums without a weight count for the next contraction, or else for the last.
  std::vector<std::int64_t> fan_in;
  Cost cost;
  std::int64_t params = 0;
  /// What `stages` move and hold (memory.h): bytes in float32.
  std::int64_t bytes_moved = 0;
  std::int64_t peak_bytes = 0;
  /// MACs of fold_stages.
  std::int64_t fold_macs = 0;
  /// False when the operator has so many steps that not every order was costed.
  bool exact = true;

  const PlanTensor& tensor(int index) const { return tensors[static_cast<std::size_t>(index)]; }
  const PlanDim& dim(int index) const { return dims[static_cast<std::size_t>(index)]; }
  std::vector<std::int64_t> shape(int tensor) const;
  /// "x", "w0", "t3".
  std::string tensor_name(int tensor) const;
  /// "[n=1, c=64, h=8]".
  std::string tensor_text(int tensor) const;

  /// Whether every window, cyclic shift, stride and repetition of the data is a tensor of its own before anything is
  /// multiplied or summed: what lowering step by step gives.
  bool views_first() const;

  /// One line a stage with its shape and cost, and the totals.
  std::string text() const;
};

/// The cheapest plan: least MACs, then least elements written. `values` are by index of op.variables().
/// Throws UserError when a size is not a positive integer there, or a count overflows.
Plan plan(const Operator& op, const Values& values);

struct PlanOptions {
  /// How many plans; at least 1.
  std::size_t limit = 1;
  /// Whether weights may be multiplied with each other, and summed, before the data comes: for inference, where they do
  /// not change. Training keeps them apart.
  bool fold_weights = false;
};

/// The cheapest plans, no two with the same stages; fewer than `limit` when there are no more, or some
/// seconds of comparing orders found none. The first one is plan()'s, or
/// with fold_weights the cheapest of those that fold, if any costs fewer MACs. The others follow by MACs, then by
/// elements written when every window is a copy; plans that take windows before a convolution rather than inside of
/// it stand right behind the one that does not.
/// Throws UserError as plan() does, and when `limit` is not in 1..1000.
std::vector<Plan> plans(const Operator& op, const Values& values, const PlanOptions& options = {});

/// The MACs of that plan, without building it.
std::int64_t macs(const Operator& op, const Values& values);

/// Elements of all weights. Throws UserError on overflow.
std::int64_t params(const Operator& op, const Values& values);

}  // namespace syno
