#include "syno/plan/loop_nest.h"

#include <algorithm>
#include <utility>

#include "syno/support/at.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

bool is_view(StageKind kind) {
  return kind != StageKind::kSum && kind != StageKind::kContraction &&
         kind != StageKind::kConvolution;
}

std::vector<Index> axes_from(std::size_t count) {
  std::vector<Index> axes;
  for (std::size_t a = 0; a < count; ++a) axes.push_back(Index::axis(static_cast<int>(a)));
  return axes;
}

/// Axes that conditions of the operands connect, with these conditions; an axis without any is alone.
struct ConnectedAxes {
  std::vector<std::size_t> axes;
  std::vector<const Condition*> conditions;
};

std::vector<ConnectedAxes> connected_axes(const LoopNest& nest) {
  std::vector<ConnectedAxes> found;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) found.push_back({{a}, {}});
  for (const Access& operand : nest.operands) {
    for (const Condition& condition : operand.conditions) {
      ConnectedAxes joined{{}, {&condition}};
      std::erase_if(found, [&](const ConnectedAxes& each) {
        const bool connected = std::any_of(each.axes.begin(), each.axes.end(), [&](std::size_t a) {
          return condition.index.depends_on(static_cast<int>(a));
        });
        if (connected) {
          joined.axes.insert(joined.axes.end(), each.axes.begin(), each.axes.end());
          joined.conditions.insert(joined.conditions.end(), each.conditions.begin(),
                                   each.conditions.end());
        }
        return connected;
      });
      found.push_back(std::move(joined));
    }
  }
  return found;
}

/// How many values of the axes meet all conditions; all values where they are too many to count.
std::int64_t points_in_bounds(const LoopNest& nest, const ConnectedAxes& connected) {
  constexpr std::int64_t kMost = 1 << 20;
  std::int64_t points = 1;
  for (const std::size_t a : connected.axes)
    points = checked_multiply(points, nest.axes[a].extent, "MACs");
  if (connected.conditions.empty() || points > kMost) return points;
  std::vector<std::int64_t> values(nest.axes.size(), 0);
  std::int64_t count = 0;
  for (std::int64_t point = 0; point < points; ++point) {
    std::int64_t rest = point;
    for (const std::size_t a : connected.axes) {
      values[a] = rest % nest.axes[a].extent;
      rest /= nest.axes[a].extent;
    }
    const auto holds = [&](const Condition* condition) {
      const std::int64_t index = condition->index.evaluate(values);
      return index >= 0 && index < condition->extent;
    };
    count += std::all_of(connected.conditions.begin(), connected.conditions.end(), holds) ? 1 : 0;
  }
  return count;
}

class Builder {
 public:
  Builder(const Plan& plan, StoreOrder order)
      : plan_(plan),
        order_(order),
        producer_(plan.tensors.size(), -1),
        buffer_(plan.tensors.size(), -1) {
    for (const auto* stages : {&plan.fold_stages, &plan.stages}) {
      for (const Stage& stage : *stages) {
        producer_[at(stage.output)] = static_cast<int>(stages_.size());
        stages_.push_back(&stage);
      }
    }
  }

  LoopProgram run() {
    program_.input = add_buffer(BufferKind::kInput, -1, plan_.input);
    for (const int weight : plan_.weights) {
      program_.weights.push_back(
          add_buffer(BufferKind::kWeight, plan_.tensor(weight).weight, weight));
      program_.buffers.back().from_weights = true;
    }
    for (const Stage* stage : stages_) {
      if (!is_view(stage->kind)) compute(*stage);
    }
    finish();
    program_.batched = is_batched();
    return std::move(program_);
  }

 private:
  int add_buffer(BufferKind kind, int number, int tensor) {
    buffer_[at(tensor)] =
        program_.add({.kind = kind, .number = number, .shape = plan_.shape(tensor)});
    return buffer_[at(tensor)];
  }

  LoopAxis axis_of(int dim) const {
    const PlanDim& named = plan_.dim(dim);
    return {named.name, named.extent, named.role == DimRole::kFree};
  }

  std::int64_t extent_of(int tensor, int place) const { return plan_.shape(tensor)[at(place)]; }

  // --- reading through views, from a tensor back to what is stored ------------------------------------------------

  Access read(int tensor, std::vector<Index> index, Indices& indices, std::int64_t& scale) const {
    while (buffer_[at(tensor)] < 0) {
      const Stage& stage = *stages_[at(producer_[at(tensor)])];
      index = through(stage, index, indices);
      if (stage.kind == StageKind::kScale) scale = checked_multiply(scale, stage.amount, "a scale");
      tensor = stage.input;
    }
    return {buffer_[at(tensor)], std::move(index), indices.conditions()};
  }

  // The index of the input at which the view reads its result's `index`.
  std::vector<Index> through(const Stage& stage, const std::vector<Index>& index,
                             Indices& indices) const {
    std::vector<Index> in = index;
    // Stages that are about no axis have -1.
    const auto axis = in.begin() + std::max(stage.axis, 0);
    switch (stage.kind) {
      case StageKind::kPermute:
        for (std::size_t d = 0; d < index.size(); ++d) in[at(stage.order[d])] = index[d];
        return in;
      case StageKind::kSplit:
        *axis = index[at(stage.axis)] * extent_of(stage.output, stage.axis + 1) +
                index[at(stage.axis + 1)];
        in.erase(axis + 1);
        return in;
      case StageKind::kMerge: {
        const std::int64_t block = extent_of(stage.input, stage.axis + 1);
        *axis = indices.quotient(index[at(stage.axis)], block);
        in.insert(axis + 1, indices.remainder(index[at(stage.axis)], block));
        return in;
      }
      case StageKind::kRoll:
        *axis = indices.remainder(*axis + Index(stage.amount), extent_of(stage.input, stage.axis));
        return in;
      case StageKind::kSlice: *axis = *axis * stage.amount; return in;
      case StageKind::kExpand: in.erase(axis); return in;
      case StageKind::kWindow:
      case StageKind::kShear: {
        const bool shear = stage.kind == StageKind::kShear;
        const Index window = shear ? index[at(stage.second_axis)] : index.back();
        *axis = *axis + window - Index(stage.before);
        indices.assume({*axis, extent_of(stage.input, stage.axis)});
        if (!shear) in.pop_back();
        return in;
      }
      case StageKind::kDiagonal:
        indices.assume({index[at(stage.axis)] - index.back(), 1});
        in.pop_back();
        return in;
      case StageKind::kScale: return in;
      case StageKind::kSum:
      case StageKind::kContraction:
      case StageKind::kConvolution: break;
    }
    throw InternalError("loop_program: not a view");
  }

  // --- nests ------------------------------------------------------------------------------------------------------

  void compute(const Stage& stage) {
    LoopNest nest;
    std::vector<int> place(plan_.dims.size(), -1);
    const auto add_axis = [&](int dim) {
      place[at(dim)] = static_cast<int>(nest.axes.size());
      nest.axes.push_back(axis_of(dim));
    };
    for (const int dim : plan_.tensor(stage.output).dims) add_axis(dim);
    nest.outputs = nest.axes.size();
    for (const int dim : stage.summed) add_axis(dim);

    const auto index_of = [&](int tensor, Indices& indices) {
      std::vector<Index> index;
      for (const int dim : plan_.tensor(tensor).dims) {
        if (place[at(dim)] >= 0) {
          index.push_back(Index::axis(place[at(dim)]));
          continue;
        }
        // A window that a convolution takes itself.
        const auto& spatial = stage.convolution.spatial;
        const auto window =
            std::find_if(spatial.begin(), spatial.end(),
                         [&](const SpatialDim& candidate) { return candidate.padded == dim; });
        ensure(window != spatial.end(), "loop_program: an unknown dimension");
        Index sum = Index::axis(place[at(window->dim)]) * window->stride;
        if (window->window >= 0)
          sum = sum + Index::axis(place[at(window->window)]) * window->dilation;
        index.push_back(sum - Index(window->before));
        indices.assume({index.back(), plan_.dim(dim).extent});
      }
      return index;
    };
    std::vector<int> inputs{stage.input};
    if (stage.weight >= 0) inputs.push_back(stage.weight);
    bool from_weights = true;
    for (const int input : inputs) {
      // Each operand is read by itself, so what is known of one says nothing about the other.
      Indices indices(nest.extents());
      std::vector<Index> index = index_of(input, indices);
      nest.operands.push_back(read(input, std::move(index), indices, nest.scale));
      from_weights = from_weights && program_.buffer(nest.operands.back().buffer).from_weights;
    }
    const int buffer = add_buffer(BufferKind::kValue, values_++, stage.output);
    program_.buffers.back().from_weights = from_weights;
    nest.store = {buffer, axes_from(nest.outputs), {}};
    program_.nests.push_back(std::move(nest));
  }

  // The output: the last nest stores it through the views behind it, or else a copy reads it through them.
  void finish() {
    if (store_through_views()) return;
    LoopNest copy;
    for (const int dim : plan_.tensor(plan_.output).dims) copy.axes.push_back(axis_of(dim));
    copy.outputs = copy.axes.size();
    Indices indices(copy.extents());
    copy.operands.push_back(read(plan_.output, axes_from(copy.outputs), indices, copy.scale));
    program_.output = add_buffer(BufferKind::kOutput, -1, plan_.output);
    copy.store = {program_.output, axes_from(copy.outputs), {}};
    program_.nests.push_back(std::move(copy));
  }

  bool store_through_views() {
    std::vector<const Stage*> views;
    int tensor = plan_.output;
    while (buffer_[at(tensor)] < 0) {
      const Stage& stage = *stages_[at(producer_[at(tensor)])];
      const bool one_to_one = stage.kind == StageKind::kPermute ||
                              stage.kind == StageKind::kSplit || stage.kind == StageKind::kMerge ||
                              stage.kind == StageKind::kRoll || stage.kind == StageKind::kScale;
      const bool by_axes = stage.kind == StageKind::kPermute || stage.kind == StageKind::kScale;
      if (!one_to_one || (order_ == StoreOrder::kByAxes && !by_axes)) return false;
      views.push_back(&stage);
      tensor = stage.input;
    }
    if (program_.buffer(buffer_[at(tensor)]).kind != BufferKind::kValue) return false;
    LoopNest& nest = program_.nests.back();
    ensure(nest.store.buffer == buffer_[at(tensor)], "loop_program: the output is not made last");
    const Indices indices(nest.extents());
    std::vector<Index> index = nest.store.index;
    std::for_each(views.rbegin(), views.rend(), [&](const Stage* stage) {
      const auto axis = index.begin() + std::max(stage->axis, 0);
      switch (stage->kind) {
        case StageKind::kPermute: {
          std::vector<Index> permuted;
          for (const int place : stage->order) permuted.push_back(index[at(place)]);
          index = std::move(permuted);
          break;
        }
        case StageKind::kSplit: {
          const std::int64_t block = extent_of(stage->output, stage->axis + 1);
          const Index whole = std::move(*axis);
          *axis = indices.quotient(whole, block);
          index.insert(axis + 1, indices.remainder(whole, block));
          break;
        }
        case StageKind::kMerge:
          *axis = *axis * extent_of(stage->input, stage->axis + 1) + *(axis + 1);
          index.erase(axis + 1);
          break;
        case StageKind::kRoll:
          *axis =
              indices.remainder(*axis - Index(stage->amount), extent_of(stage->input, stage->axis));
          break;
        case StageKind::kScale:
          nest.scale = checked_multiply(nest.scale, stage->amount, "a scale");
          break;
        default: throw InternalError("loop_program: not a one-to-one view");
      }
    });
    Buffer& buffer = program_.buffers[at(nest.store.buffer)];
    buffer.kind = BufferKind::kOutput;
    buffer.number = -1;
    buffer.shape = plan_.shape(plan_.output);
    program_.output = nest.store.buffer;
    nest.store.index = std::move(index);
    return true;
  }

  // Dimension 0 of everything that depends on the input, untouched.
  bool is_batched() const {
    const auto first_is_axis = [](const Access& access, int axis) {
      if (access.index.empty() || access.index[0] != Index::axis(axis)) return false;
      const auto others = [axis](const Index& index) { return index.depends_on(axis); };
      return std::none_of(access.index.begin() + 1, access.index.end(), others) &&
             std::none_of(access.conditions.begin(), access.conditions.end(),
                          [&](const Condition& condition) { return others(condition.index); });
    };
    bool any = false;
    for (const LoopNest& nest : program_.nests) {
      if (program_.buffer(nest.store.buffer).from_weights) continue;
      int axis = -1;
      for (std::size_t a = 0; a < nest.outputs; ++a) {
        if (nest.axes[a].free && first_is_axis(nest.store, static_cast<int>(a)))
          axis = static_cast<int>(a);
      }
      if (axis < 0) return false;
      for (const Access& operand : nest.operands) {
        if (!program_.buffer(operand.buffer).from_weights && !first_is_axis(operand, axis))
          return false;
      }
      any = true;
    }
    return any;
  }

  const Plan& plan_;
  StoreOrder order_;
  LoopProgram program_;
  /// Those on weights alone, then those on the data.
  std::vector<const Stage*> stages_;
  /// By tensor: the stage that made it, and where it is stored; -1 for views.
  std::vector<int> producer_;
  std::vector<int> buffer_;
  int values_ = 0;
};

std::string access_text(const LoopProgram& program, const LoopNest& nest, const Access& access) {
  std::vector<std::string> parts;
  for (const Index& index : access.index) parts.push_back(index.text(nest.names()));
  std::string text = program.buffer(access.buffer).name() + "[" + join(parts, ", ") + "]";
  for (const Condition& condition : access.conditions) {
    text += " {0 <= " + condition.index.text(nest.names()) + " < " +
            std::to_string(condition.extent) + "}";
  }
  return text;
}

}  // namespace

std::string Buffer::name() const {
  switch (kind) {
    case BufferKind::kInput: return "x";
    case BufferKind::kWeight: return "w" + std::to_string(number);
    case BufferKind::kValue: return number < 0 ? "panel" : "t" + std::to_string(number);
    case BufferKind::kOutput: return "y";
    case BufferKind::kOutputGradient: return "dy";
    case BufferKind::kInputGradient: return "dx";
    case BufferKind::kWeightGradient: return "dw" + std::to_string(number);
  }
  throw InternalError("Buffer::name: not a buffer");
}

std::int64_t Buffer::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape)
    product = checked_multiply(product, extent, "the elements of a tensor");
  return product;
}

std::vector<std::int64_t> LoopNest::extents() const {
  std::vector<std::int64_t> result;
  for (const LoopAxis& axis : axes) result.push_back(axis.extent);
  return result;
}

std::vector<std::string> LoopNest::names() const {
  std::vector<std::string> result;
  for (const LoopAxis& axis : axes) result.push_back(axis.name);
  return result;
}

std::int64_t LoopNest::macs() const {
  if (operands.size() == 1 && outputs == axes.size()) return 0;
  std::int64_t product = 1;
  for (const LoopAxis& axis : axes) product = checked_multiply(product, axis.extent, "MACs");
  return product;
}

std::int64_t LoopNest::macs_in_bounds() const {
  if (macs() == 0) return 0;
  std::int64_t product = 1;
  for (const ConnectedAxes& each : connected_axes(*this))
    product = checked_multiply(product, points_in_bounds(*this, each), "MACs");
  return product;
}

int LoopProgram::add(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return static_cast<int>(buffers.size()) - 1;
}

std::int64_t LoopProgram::macs_in_bounds() const {
  std::int64_t sum = 0;
  for (const LoopNest& nest : nests) {
    if (!buffer(nest.store.buffer).from_weights)
      sum = checked_add(sum, nest.macs_in_bounds(), "MACs");
  }
  return sum;
}

std::string LoopProgram::text(const LoopNest& nest) const {
  std::string text = access_text(*this, nest, nest.store) + " = ";
  std::vector<std::string> summed;
  for (std::size_t a = nest.outputs; a < nest.axes.size(); ++a)
    summed.push_back(nest.axes[a].name + "<" + std::to_string(nest.axes[a].extent));
  if (!summed.empty()) text += "sum(" + join(summed, ", ") + ") ";
  if (nest.scale != 1) text += std::to_string(nest.scale) + " * ";
  std::vector<std::string> factors;
  for (const Access& operand : nest.operands) factors.push_back(access_text(*this, nest, operand));
  return text + join(factors, " * ");
}

std::string LoopProgram::text() const {
  std::string text;
  for (const LoopNest& nest : nests) text += this->text(nest) + "\n";
  return text;
}

LoopProgram loop_program(const Plan& plan, StoreOrder order) {
  return Builder(plan, order).run();
}

}  // namespace syno
