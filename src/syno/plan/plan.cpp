#include "syno/plan/plan.h"

#include <algorithm>
#include <bit>
#include <set>

#include "syno/plan/lower.h"
#include "syno/plan/memory.h"
#include "syno/plan/orders.h"
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
    const auto times = [](std::int64_t factor) {
      return factor == 1 ? "" : std::to_string(factor) + "*";
    };
    std::string part = times(spatial.stride) + plan.dim(spatial.dim).name;
    if (spatial.window >= 0) {
      part += "+" + times(spatial.dilation) + plan.dim(spatial.window).name;
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
    case StageKind::kDiagonal: return name + " " + input + " over " + in_dim(stage.axis);
    case StageKind::kScale: return name + " " + input + " by " + std::to_string(stage.amount);
    case StageKind::kSum: return "sum " + input + " over " + names(plan, stage.summed);
    case StageKind::kContraction:
      return name + " " + input + ", " + plan.tensor_name(stage.weight) + summed;
    case StageKind::kConvolution:
      return name + " " + input + ", " + plan.tensor_name(stage.weight) + " at " +
             spatial_text(plan, stage.convolution) + summed;
  }
  throw InternalError("plan text: not a stage");
}

std::string stages_text(const Plan& plan, const std::vector<Stage>& stages) {
  std::string text;
  for (const Stage& stage : stages) {
    text += plan.tensor_name(stage.output) + " " + plan.tensor_text(stage.output) + " = " +
            action(plan, stage);
    if (stage.cost.macs > 0) text += "    " + with_thousands(stage.cost.macs) + " MACs";
    text += "\n";
  }
  return text;
}

bool is_contraction(const Stage& stage) {
  return stage.kind == StageKind::kContraction || stage.kind == StageKind::kConvolution;
}

Plan completed(Plan plan, const Operator& op, const Values& values) {
  plan.params = params(op, values);
  const MemoryUse use = memory_use(plan);
  plan.bytes_moved = use.bytes_moved;
  plan.peak_bytes = use.peak_bytes;
  return plan;
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
    case StageKind::kDiagonal: return "diagonal";
    case StageKind::kScale: return "scale";
    case StageKind::kSum: return "sum";
    case StageKind::kContraction: return "contract";
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

bool Plan::views_first() const {
  std::vector<bool> on_data(tensors.size(), false);
  on_data[static_cast<std::size_t>(input)] = true;
  bool computed = false;
  for (const Stage& stage : stages) {
    if (!on_data[static_cast<std::size_t>(stage.input)]) continue;
    on_data[static_cast<std::size_t>(stage.output)] = true;
    switch (stage.kind) {
      case StageKind::kPermute:
      case StageKind::kSplit:
      case StageKind::kMerge:
      case StageKind::kScale: break;
      case StageKind::kRoll:
      case StageKind::kSlice:
      case StageKind::kExpand:
      case StageKind::kWindow:
      case StageKind::kShear:
      case StageKind::kDiagonal:
        if (computed) return false;
        break;
      case StageKind::kSum:
      case StageKind::kContraction: computed = true; break;
      case StageKind::kConvolution: return false;
    }
  }
  return true;
}

std::string Plan::text() const {
  std::string text = "x " + tensor_text(input) + "\n";
  for (const int weight : weights) text += tensor_name(weight) + " " + tensor_text(weight) + "\n";
  if (!fold_stages.empty()) text += "once, on weights alone:\n";
  text += stages_text(*this, fold_stages);
  if (!fold_stages.empty()) text += "for each x:\n";
  text += stages_text(*this, stages);
  text += "total " + with_thousands(cost.macs) + " MACs, " + with_thousands(params) +
          " parameters, " + with_thousands(cost.written) + " elements written" +
          (exact ? "" : " (not every order was costed)") + "\n";
  text += "      " + with_thousands(bytes_moved) + " bytes moved, peak memory " +
          with_thousands(peak_bytes) + " bytes\n";
  return text;
}

Plan plan(const Operator& op, const Values& values) {
  const Network network(op, values);
  return completed(lower(network, cheapest_order(network)), op, values);
}

std::vector<Plan> plans(const Operator& op, const Values& values, const PlanOptions& options) {
  constexpr std::size_t kMost = 1000;
  if (options.limit < 1 || options.limit > kMost) {
    throw Complaint("cannot enumerate " + std::to_string(options.limit) + " plans")
        .expected("a limit of 1 to " + std::to_string(kMost), std::to_string(options.limit))
        .error();
  }
  const Network network(op, values);
  const Order usual = cheapest_order(network);
  const Plan trained = lower(network, usual);
  std::vector<Plan> found;
  std::set<std::string> known;
  // What `order` becomes, and its variants with windows before convolutions.
  const auto add = [&](Order order) {
    const bool folds =
        std::any_of(order.moves.begin(), order.moves.end(),
                    [](const PlanMove& move) { return (move.folded | move.offline) != 0; });
    const auto take = [&] {
      Plan next = lower(network, order, folds);
      next.fan_in = trained.fan_in;
      if (found.size() < options.limit && known.insert(stages_text(next, next.stages)).second)
        found.push_back(completed(std::move(next), op, values));
    };
    std::vector<std::size_t> convolutions;
    // The i-th contraction of the order is the i-th of the stages.
    const Plan inside = lower(network, order, folds);
    std::size_t stage = 0;
    for (std::size_t m = 0; m < order.moves.size(); ++m) {
      if (order.moves[m].kind != MoveKind::kContraction) continue;
      while (!is_contraction(inside.stages[stage])) ++stage;
      if (inside.stages[stage++].kind == StageKind::kConvolution) convolutions.push_back(m);
    }
    std::vector<std::size_t> masks(std::size_t{1} << std::min<std::size_t>(convolutions.size(), 8));
    for (std::size_t mask = 0; mask < masks.size(); ++mask) masks[mask] = mask;
    std::stable_sort(masks.begin(), masks.end(), [](std::size_t a, std::size_t b) {
      return std::popcount(a) < std::popcount(b);
    });
    for (const std::size_t mask : masks) {
      for (std::size_t i = 0; i < convolutions.size() && i < 8; ++i)
        order.moves[convolutions[i]].windows_apart = (mask >> i & 1) != 0;
      take();
    }
  };
  // Different computations nearly always have different stages; where they do not, more of them are requested.
  OrdersWork work;
  for (std::size_t asked = options.limit;; asked *= 2) {
    found.clear();
    known.clear();
    const std::vector<Order> orders =
        cheapest_orders(network, {.limit = asked, .fold_weights = options.fold_weights}, work);
    const bool folding_pays =
        options.fold_weights && !orders.empty() && orders.front().cost.macs < usual.cost.macs;
    if (!folding_pays) add(usual);
    const std::uint64_t usual_computation = computation(network, usual);
    for (const Order& order : orders) {
      if (!folding_pays && computation(network, order) == usual_computation) continue;
      add(order);
    }
    if (found.size() == options.limit || orders.size() < asked || asked > 4 * kMost ||
        work.units > OrdersWork::kMuch) {
      return found;
    }
  }
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
