#include "syno/plan/adjoint.h"

#include <algorithm>
#include <map>
#include <utility>

#include "syno/support/at.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

bool is_view(StageKind kind) {
  return kind != StageKind::kSum && kind != StageKind::kContraction &&
         kind != StageKind::kConvolution;
}

bool contains(const std::vector<int>& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

class Builder {
 public:
  explicit Builder(const Plan& plan) : plan_(plan), program_(result_.program) {
    ensure(plan.fold_stages.empty(), "gradient_program: weights are folded");
    program_ = loop_program(plan);
    program_.batched = false;
    std::size_t nest = 0;
    for (const Stage& stage : plan.stages) {
      for (const int input : {stage.input, stage.weight}) {
        if (input < 0) continue;
        const bool first = readers_.emplace(input, &stage).second;
        ensure(first, "gradient_program: a tensor is read twice");
      }
      makers_.emplace(stage.output, &stage);
      if (!is_view(stage.kind)) nests_.emplace(&stage, nest++);
    }
  }

  GradientProgram run() {
    const std::size_t forward = program_.nests.size();
    for (const Buffer& buffer : program_.buffers) values_ = std::max(values_, buffer.number + 1);
    result_.output_gradient = add_buffer(BufferKind::kOutputGradient, -1, plan_.output);
    result_.input_gradient = gradient_of(plan_.input, BufferKind::kInputGradient, -1);
    for (const int weight : plan_.weights) {
      result_.weight_gradients.push_back(
          gradient_of(weight, BufferKind::kWeightGradient, plan_.tensor(weight).weight));
    }
    drop_unread(forward);
    return std::move(result_);
  }

 private:
  int add_buffer(BufferKind kind, int number, int tensor) {
    return program_.add({.kind = kind, .number = number, .shape = plan_.shape(tensor)});
  }

  LoopAxis axis_of(int dim) const { return {plan_.dim(dim).name, plan_.dim(dim).extent, false}; }
  std::int64_t extent_of(int tensor, int place) const { return plan_.shape(tensor)[at(place)]; }

  // --- from places of a tensor to places of what is made of it ----------------------------------------------------

  // The places in the view's result that read the place `index` of its input; `extra` is an axis to sum over, where
  // there is one.
  std::vector<Index> onward(const Stage& stage, std::vector<Index> index, Indices& indices,
                            int extra) const {
    const auto axis = index.begin() + std::max(stage.axis, 0);
    switch (stage.kind) {
      case StageKind::kPermute: {
        std::vector<Index> permuted;
        for (const int place : stage.order) permuted.push_back(index[at(place)]);
        return permuted;
      }
      case StageKind::kSplit: {
        const std::int64_t block = extent_of(stage.output, stage.axis + 1);
        const Index whole = std::move(*axis);
        *axis = indices.quotient(whole, block);
        index.insert(axis + 1, indices.remainder(whole, block));
        return index;
      }
      case StageKind::kMerge:
        *axis = *axis * extent_of(stage.input, stage.axis + 1) + *(axis + 1);
        index.erase(axis + 1);
        return index;
      case StageKind::kRoll:
        *axis = indices.remainder(*axis - Index(stage.amount), extent_of(stage.input, stage.axis));
        return index;
      case StageKind::kSlice:
        *axis = divided(*axis, stage.amount, extent_of(stage.output, stage.axis), indices);
        return index;
      case StageKind::kExpand: index.insert(axis, Index::axis(extra)); return index;
      case StageKind::kWindow:
      case StageKind::kShear: {
        const bool shear = stage.kind == StageKind::kShear;
        // Counted from the other end, so that places slide in the direction of the axis.
        const Index window =
            shear ? index[at(stage.second_axis)] : Index(stage.amount - 1) - Index::axis(extra);
        *axis = *axis + Index(stage.before) - window;
        indices.assume({*axis, extent_of(stage.output, stage.axis)});
        if (!shear) index.push_back(window);
        return index;
      }
      case StageKind::kDiagonal: index.push_back(index[at(stage.axis)]); return index;
      case StageKind::kScale: return index;
      case StageKind::kSum:
      case StageKind::kContraction:
      case StageKind::kConvolution: break;
    }
    throw InternalError("gradient_program: not a view");
  }

  // index / step where that is whole and below the extent.
  static Index divided(const Index& index, std::int64_t step, std::int64_t extent,
                       Indices& indices) {
    indices.assume({indices.remainder(index, step), 1});
    Index result = indices.quotient(index, step);
    indices.assume({result, extent});
    return result;
  }

  // The dimension that a view sums over in its gradient, or -1.
  int summed_by(const Stage& stage) const {
    const auto& dims = plan_.tensor(stage.output).dims;
    if (stage.kind == StageKind::kExpand) return dims[at(stage.axis)];
    return stage.kind == StageKind::kWindow ? dims.back() : -1;
  }

  // The gradient for a place of a tensor, through all stages behind it that only move elements.
  Access gradient_at(int tensor, std::vector<Index> index, Indices& indices, std::int64_t& scale) {
    while (tensor != plan_.output) {
      const Stage& stage = *readers_.at(tensor);
      if (stage.kind == StageKind::kSum) {
        const auto& dims = plan_.tensor(tensor).dims;
        for (std::size_t d = dims.size(); d-- > 0;) {
          if (contains(stage.summed, dims[d]))
            index.erase(index.begin() + static_cast<std::ptrdiff_t>(d));
        }
      } else if (is_view(stage.kind) && summed_by(stage) < 0) {
        index = onward(stage, std::move(index), indices, -1);
        scale_by(stage, scale);
      } else {
        const int buffer = gradient_of(tensor, BufferKind::kValue, -1);
        return {buffer, std::move(index), indices.conditions()};
      }
      tensor = stage.output;
    }
    return {result_.output_gradient, std::move(index), indices.conditions()};
  }

  static void scale_by(const Stage& stage, std::int64_t& scale) {
    if (stage.kind == StageKind::kScale) scale = checked_multiply(scale, stage.amount, "a scale");
  }

  // --- nests ------------------------------------------------------------------------------------------------------

  int gradient_of(int tensor, BufferKind kind, int number) {
    if (const auto found = gradients_.find(tensor); found != gradients_.end()) return found->second;
    LoopNest nest;
    for (const int dim : plan_.tensor(tensor).dims) nest.axes.push_back(axis_of(dim));
    nest.outputs = nest.axes.size();
    std::vector<const Stage*> way;
    int last = tensor;
    const Stage* end = nullptr;
    for (; last != plan_.output; last = way.back()->output) {
      const Stage& stage = *readers_.at(last);
      if (!is_view(stage.kind)) {
        end = &stage;
        break;
      }
      way.push_back(&stage);
      if (const int summed = summed_by(stage); summed >= 0) nest.axes.push_back(axis_of(summed));
    }
    int next = static_cast<int>(nest.outputs);
    const int first_of_end = static_cast<int>(nest.axes.size());
    if (end != nullptr) {
      for (const int dim : new_dims(*end, last)) nest.axes.push_back(axis_of(dim));
    }

    Indices indices(nest.extents());
    std::vector<Index> index;
    for (int a = 0; a < next; ++a) index.push_back(Index::axis(a));
    for (const Stage* stage : way) {
      const int extra = summed_by(*stage) >= 0 ? next++ : -1;
      index = onward(*stage, std::move(index), indices, extra);
      scale_by(*stage, nest.scale);
    }
    if (end == nullptr) {
      nest.operands.push_back({result_.output_gradient, std::move(index), indices.conditions()});
    } else {
      read_stage(*end, last, index, first_of_end, indices, nest);
    }
    const int buffer = add_buffer(kind, kind == BufferKind::kValue ? values_++ : number, tensor);
    nest.store.buffer = buffer;
    for (std::size_t a = 0; a < nest.outputs; ++a)
      nest.store.index.push_back(Index::axis(static_cast<int>(a)));
    gradients_.emplace(tensor, buffer);
    program_.nests.push_back(std::move(nest));
    return buffer;
  }

  // The dimensions of the stage's loops: those of its result, then those that it sums.
  std::vector<int> loop_dims(const Stage& stage) const {
    std::vector<int> dims = plan_.tensor(stage.output).dims;
    dims.insert(dims.end(), stage.summed.begin(), stage.summed.end());
    return dims;
  }

  // The window of a convolution that takes the data's dimension, or nothing.
  static const SpatialDim* window_of(const Stage& stage, int tensor, int dim) {
    if (tensor != stage.input) return nullptr;
    const auto& spatial = stage.convolution.spatial;
    const auto found = std::find_if(spatial.begin(), spatial.end(),
                                    [&](const SpatialDim& one) { return one.padded == dim; });
    return found == spatial.end() ? nullptr : &*found;
  }

  // Dimensions of the stage's loops that a place of its operand `tensor` does not decide.
  std::vector<int> new_dims(const Stage& stage, int tensor) const {
    std::vector<int> decided;
    for (const int dim : plan_.tensor(tensor).dims) {
      const SpatialDim* window = window_of(stage, tensor, dim);
      decided.push_back(window != nullptr ? window->dim : dim);
    }
    std::vector<int> dims = loop_dims(stage);
    std::erase_if(dims, [&](int dim) { return contains(decided, dim); });
    return dims;
  }

  // The operands of the nest of which the last stage is `stage`, read at the place `index` of its operand `tensor`.
  void read_stage(const Stage& stage, int tensor, const std::vector<Index>& index, int first_of_end,
                  Indices& indices, LoopNest& nest) {
    const std::vector<int> fresh = new_dims(stage, tensor);
    std::map<int, Index> value;
    for (std::size_t d = 0; d < fresh.size(); ++d)
      value[fresh[d]] = Index::axis(first_of_end + static_cast<int>(d));
    for (const SpatialDim& spatial : stage.convolution.spatial) {
      if (tensor == stage.input && spatial.window >= 0) {
        value[spatial.window] =
            Index(plan_.dim(spatial.window).extent - 1) - value.at(spatial.window);
      }
    }
    const auto& dims = plan_.tensor(tensor).dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const SpatialDim* window = window_of(stage, tensor, dims[d]);
      if (window == nullptr) {
        value[dims[d]] = index[d];
        continue;
      }
      Index place = index[d] + Index(window->before);
      if (window->window >= 0) place = place - value.at(window->window) * window->dilation;
      value[window->dim] = divided(place, window->stride, plan_.dim(window->dim).extent, indices);
    }
    const Indices reached = indices;
    std::vector<Index> result;
    for (const int dim : plan_.tensor(stage.output).dims) result.push_back(value.at(dim));
    nest.operands.push_back(gradient_at(stage.output, std::move(result), indices, nest.scale));
    if (stage.weight < 0) return;
    std::vector<Index> axes;
    for (const int dim : loop_dims(stage)) axes.push_back(value.at(dim));
    const bool data = tensor == stage.input;
    const LoopNest& forward = program_.nests[nests_.at(&stage)];
    nest.operands.push_back(moved(forward, forward.operands[data ? 1 : 0], axes, reached));
    for (int other = data ? stage.weight : stage.input;;) {
      const auto maker = makers_.find(other);
      if (maker == makers_.end() || !is_view(maker->second->kind)) break;
      scale_by(*maker->second, nest.scale);
      other = maker->second->input;
    }
  }

  // An operand of the operator's own nest, read where its axes have the values `axes`. What is outside of it is zero in
  // the gradient already; the operand needs those conditions only where it could not be read.
  static Access moved(const LoopNest& nest, const Access& access, const std::vector<Index>& axes,
                      const Indices& reached) {
    Indices indices(reached.extents());
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const auto asks = [&](const Index& index) { return index.depends_on(static_cast<int>(a)); };
      const bool asked = std::any_of(access.index.begin(), access.index.end(), asks) ||
                         std::any_of(access.conditions.begin(), access.conditions.end(),
                                     [&](const Condition& c) { return asks(c.index); });
      const Range range = indices.range(axes[a]);
      if (!asked || (range.least >= 0 && range.most < nest.axes[a].extent)) continue;
      indices = reached;
      break;
    }
    for (const Condition& condition : access.conditions)
      indices.assume({indices.substitute(condition.index, axes), condition.extent});
    Access result{access.buffer, {}, {}};
    for (const Index& index : access.index) result.index.push_back(indices.substitute(index, axes));
    result.conditions = indices.conditions();
    return result;
  }

  // Removes those of the first `forward` nests that no gradient needs.
  void drop_unread(std::size_t forward) {
    std::vector<bool> read(program_.buffers.size(), false);
    std::vector<LoopNest> kept;
    for (std::size_t n = program_.nests.size(); n-- > 0;) {
      LoopNest& nest = program_.nests[n];
      if (n < forward && !read[at(nest.store.buffer)]) continue;
      for (const Access& operand : nest.operands) read[at(operand.buffer)] = true;
      kept.push_back(std::move(nest));
    }
    std::reverse(kept.begin(), kept.end());
    program_.nests = std::move(kept);
  }

  const Plan& plan_;
  GradientProgram result_;
  LoopProgram& program_;
  /// By tensor.
  std::map<int, const Stage*> readers_;
  std::map<int, const Stage*> makers_;
  std::map<int, int> gradients_;
  /// The nest of a stage that computes.
  std::map<const Stage*, std::size_t> nests_;
  int values_ = 0;
};

}  // namespace

GradientProgram gradient_program(const Plan& plan) {
  return Builder(plan).run();
}

Plan with_batch(const Plan& plan, std::int64_t batch) {
  Plan result = plan;
  result.dims[at(plan.tensor(plan.input).dims.at(0))].extent = batch;
  return result;
}

}  // namespace syno
