#include "syno/plan/plan.h"

#include "syno/plan/lower.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

std::string names(const Plan& plan, const std::vector<int>& dims) {
  std::vector<std::string> parts;
  for (const int dim : dims) parts.push_back(plan.dim(dim).name);
  return join(parts, " ");
}

std::string spatial_text(const Plan& plan, const ConvolutionDims& convolution) {
  std::vector<std::string> parts;
  for (const SpatialDim& spatial : convolution.spatial) {
    std::string part = plan.dim(spatial.dim).name;
    if (spatial.window >= 0) {
      part += "+" + plan.dim(spatial.window).name;
      if (spatial.before > 0) part += "-" + std::to_string(spatial.before);
    }
    parts.push_back(part);
  }
  return join(parts, ", ");
}

// What a stage does, without its result.
std::string action(const Plan& plan, const Stage& stage) {
  const std::string input = plan.tensor_name(stage.input);
  const auto in_dim = [&](int axis) {
    return plan.dim(plan.tensor(stage.input).dims[static_cast<std::size_t>(axis)]).name;
  };
  const auto out_dim = [&](int axis) {
    return plan.dim(plan.tensor(stage.output).dims[static_cast<std::size_t>(axis)]).name;
  };
  const std::string name(stage_name(stage.kind));
  const std::string summed = stage.summed.empty() ? "" : ", sum over " + names(plan, stage.summed);
  switch (stage.kind) {
    case StageKind::kPermute: return name + " " + input;
    case StageKind::kSplit:
      return name + " " + input + ": " + in_dim(stage.axis) + " into " + out_dim(stage.axis) +
             ", " + out_dim(stage.axis + 1);
    case StageKind::kMerge:
      return name + " " + input + ": " + in_dim(stage.axis) + ", " + in_dim(stage.axis + 1) +
             " into " + out_dim(stage.axis);
    case StageKind::kRoll:
      return name + " " + input + ": " + in_dim(stage.axis) + " = (" + out_dim(stage.axis) +
             (stage.amount < 0 ? "" : "+") + std::to_string(stage.amount) + ") mod " +
             std::to_string(plan.shape(stage.input)[static_cast<std::size_t>(stage.axis)]);
    case StageKind::kSlice:
      return name + " " + input + ": " + in_dim(stage.axis) + " = " + std::to_string(stage.amount) +
             "*" + out_dim(stage.axis);
    case StageKind::kExpand: return name + " " + input + " along " + out_dim(stage.axis);
    case StageKind::kWindow:
    case StageKind::kShear: {
      const std::size_t last = plan.tensor(stage.output).dims.size() - 1;
      const int window =
          stage.kind == StageKind::kShear ? stage.second_axis : static_cast<int>(last);
      return name + " " + input + ": " + in_dim(stage.axis) + " = " + out_dim(stage.axis) + "+" +
             out_dim(window) + (stage.before > 0 ? "-" + std::to_string(stage.before) : "");
    }
    case StageKind::kScale: return name + " " + input + " by " + std::to_string(stage.amount);
    case StageKind::kSum: return "sum " + input + " over " + names(plan, stage.summed);
    case StageKind::kContract:
      return name + " " + input + ", " + plan.tensor_name(stage.weight) + summed;
    case StageKind::kConvolution:
      return name + " " + input + ", " + plan.tensor_name(stage.weight) + " at " +
             spatial_text(plan, stage.convolution) + summed;
  }
  throw InternalError("plan text: not a stage");
}

}  // namespace

std::string_view stage_name(StageKind kind) {
  switch (kind) {
    case StageKind::kPermute: return "permute";
    case StageKind::kSplit: return "split";
    case StageKind::kMerge: return "merge";
    case StageKind::kRoll: return "roll";
    case StageKind::kSlice: return "slice";
    case StageKind::kExpand: return "expand";
    case StageKind::kWindow: return "window";
    case StageKind::kShear: return "shear";
    case StageKind::kScale: return "scale";
    case StageKind::kSum: return "sum";
    case StageKind::kContract: return "contract";
    case StageKind::kConvolution: return "convolve";
  }
  throw InternalError("stage_name: not a stage");
}

std::vector<std::int64_t> Plan::shape(int index) const {
  std::vector<std::int64_t> extents;
  for (const int d : tensor(index).dims) extents.push_back(dim(d).extent);
  return extents;
}

std::string Plan::tensor_name(int index) const {
  const PlanTensor& t = tensor(index);
  if (t.kind == TensorKind::kInput) return "x";
  if (t.kind == TensorKind::kWeight) return "w" + std::to_string(t.weight);
  int number = 0;
  for (int other = 0; other < index; ++other) number += tensor(other).kind == TensorKind::kValue;
  return "t" + std::to_string(number);
}

std::string Plan::tensor_text(int index) const {
  std::vector<std::string> parts;
  for (const int d : tensor(index).dims) {
    const PlanDim& named = dim(d);
    parts.push_back(named.role == DimRole::kFree ? named.name
                                                 : named.name + "=" + std::to_string(named.extent));
  }
  return "[" + join(parts, ", ") + "]";
}

std::string Plan::text() const {
  std::string text = "x " + tensor_text(input) + "\n";
  for (const int weight : weights) text += tensor_name(weight) + " " + tensor_text(weight) + "\n";
  for (const Stage& stage : stages) {
    text +=
        tensor_name(stage.output) + " " + tensor_text(stage.output) + " = " + action(*this, stage);
    if (stage.cost.macs > 0) text += "    " + with_thousands(stage.cost.macs) + " MACs";
    text += "\n";
  }
  text += "total " + with_thousands(cost.macs) + " MACs, " + with_thousands(params) +
          " parameters, " + with_thousands(cost.written) + " elements written" +
          (exact ? "" : " (not every order was costed)") + "\n";
  return text;
}

Plan plan(const Operator& op, const Values& values) {
  const Network network(op, values);
  const Order order = cheapest_order(network);
  Plan lowered = lower(network, order);
  lowered.params = params(op, values);
  return lowered;
}

std::int64_t macs(const Operator& op, const Values& values) {
  return cheapest_order(Network(op, values)).cost.macs;
}

std::int64_t params(const Operator& op, const Values& values) {
  std::int64_t total = 0;
  for (const std::vector<Size>& shape : op.weight_shapes()) {
    std::int64_t elements = 1;
    for (const Size& size : shape) {
      const auto value = size.evaluate(values);
      if (!value) {
        throw Complaint("the size " + size.text(*op.variables()) +
                        " of a weight is not a positive integer under this binding")
            .hint("give every variable a positive value, so that all quotients are whole")
            .error();
      }
      elements = checked_multiply(elements, *value, "parameters");
    }
    total = checked_add(total, elements, "parameters");
  }
  return total;
}

}  // namespace syno
