#include "syno/plan/one_tap.h"

#include <algorithm>

#include "syno/plan/convolution.h"
#include "syno/plan/memory.h"
#include "syno/support/at.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

using Dims = std::vector<int>;

bool contains(const Dims& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

class OneTap {
 public:
  OneTap(const Plan& plan, double most_extra) : plan_(plan), most_extra_(most_extra) {}

  Plan run() {
    std::vector<Stage> stages;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      Stage* next = s + 2 < plan_.stages.size() ? &plan_.stages[s + 2] : nullptr;
      if (s + 1 < plan_.stages.size() &&
          replace(plan_.stages[s], plan_.stages[s + 1], next, stages)) {
        ++s;
      } else {
        stages.push_back(plan_.stages[s]);
      }
    }
    plan_.stages = std::move(stages);
    const MemoryUse use = memory_use(plan_);
    plan_.bytes_moved = use.bytes_moved;
    plan_.peak_bytes = use.peak_bytes;
    return std::move(plan_);
  }

 private:
  const Dims& dims(int tensor) const { return plan_.tensor(tensor).dims; }

  // Appends the two stages that stand for a contraction and a shear, if they can.
  bool replace(const Stage& contract, const Stage& shear, Stage* next, std::vector<Stage>& stages) {
    if (contract.kind != StageKind::kContraction || shear.kind != StageKind::kShear ||
        shear.input != contract.output) {
      return false;
    }
    const int window = dims(shear.input)[at(shear.second_axis)];
    const int place = dims(shear.input)[at(shear.axis)];
    const int result_place = dims(shear.output)[at(shear.axis)];
    const bool apart =
        contains(dims(contract.weight), window) && !contains(dims(contract.input), window) &&
        contains(dims(contract.input), place) && !contains(dims(contract.weight), place);
    if (!apart) return false;
    const std::int64_t taps = plan_.dim(window).extent;
    const std::int64_t extra = checked_multiply(contract.cost.macs, taps - 1, "MACs");
    if (static_cast<double>(extra) > most_extra_ * static_cast<double>(plan_.cost.macs))
      return false;

    // The window's own index is an output channel; a new dimension is the tap.
    const int tap = add_dim(plan_.dim(window));
    Dims diagonal_dims = dims(contract.weight);
    diagonal_dims.push_back(tap);
    Dims summed = contract.summed;
    summed.push_back(tap);
    const auto convolution =
        match_convolution(plan_, dims(contract.input), diagonal_dims, summed,
                          {{place, result_place, tap, shear.before, shear.after}});
    if (!convolution) {
      plan_.dims.pop_back();
      return false;
    }

    Stage diagonal;
    diagonal.kind = StageKind::kDiagonal;
    diagonal.input = contract.weight;
    diagonal.axis = static_cast<int>(std::find(diagonal_dims.begin(), diagonal_dims.end(), window) -
                                     diagonal_dims.begin());
    diagonal.cost.written = elements(diagonal_dims);
    plan_.tensors.push_back({TensorKind::kValue, -1, std::move(diagonal_dims)});
    diagonal.output = static_cast<int>(plan_.tensors.size()) - 1;
    add_cost(diagonal.cost);

    Stage convolve;
    convolve.kind = StageKind::kConvolution;
    convolve.input = contract.input;
    convolve.weight = diagonal.output;
    convolve.output = shear.output;
    convolve.summed = std::move(summed);
    convolve.convolution = *convolution;
    convolve.cost.macs = checked_multiply(contract.cost.macs, taps, "MACs");
    convolve.cost.written = shear.cost.written;
    // The contraction's result is no longer written.
    plan_.cost.macs = checked_add(plan_.cost.macs, extra, "MACs");
    plan_.cost.written -= contract.cost.written;

    const Dims natural = convolution_output(*convolution);
    stages.push_back(std::move(diagonal));
    const bool any_order =
        next != nullptr && next->input == shear.output &&
        (next->kind == StageKind::kConvolution || next->kind == StageKind::kContraction);
    if (any_order || natural == dims(shear.output)) {
      // A product takes its dimensions in any order: in that in which they come, nothing has to be moved.
      plan_.tensors[at(shear.output)].dims = natural;
      if (any_order) {
        Dims& channels = next->convolution.in_channels;
        std::sort(channels.begin(), channels.end(), [&](int a, int b) {
          return std::find(natural.begin(), natural.end(), a) <
                 std::find(natural.begin(), natural.end(), b);
        });
      }
      stages.push_back(std::move(convolve));
      return true;
    }
    // Stages behind it know the shear's order of dimensions.
    plan_.tensors.push_back({TensorKind::kValue, -1, natural});
    convolve.output = static_cast<int>(plan_.tensors.size()) - 1;
    Stage permute;
    permute.kind = StageKind::kPermute;
    permute.input = convolve.output;
    permute.output = shear.output;
    for (const int dim : dims(shear.output)) {
      permute.order.push_back(
          static_cast<int>(std::find(natural.begin(), natural.end(), dim) - natural.begin()));
    }
    stages.push_back(std::move(convolve));
    stages.push_back(std::move(permute));
    return true;
  }

  int add_dim(PlanDim dim) {
    const auto used = [&](const std::string& name) {
      return std::any_of(plan_.dims.begin(), plan_.dims.end(),
                         [&](const PlanDim& other) { return other.name == name; });
    };
    dim.role = DimRole::kReduction;
    dim.name.clear();
    for (char letter = 'a'; letter <= 'z' && dim.name.empty(); ++letter) {
      if (!used(std::string(1, letter))) dim.name = letter;
    }
    for (int number = 0; dim.name.empty(); ++number) {
      const std::string name = "tap" + std::to_string(number);
      if (!used(name)) dim.name = name;
    }
    plan_.dims.push_back(std::move(dim));
    return static_cast<int>(plan_.dims.size()) - 1;
  }

  std::int64_t elements(const Dims& of) const {
    std::int64_t product = 1;
    for (const int dim : of)
      product = checked_multiply(product, plan_.dim(dim).extent, "elements written");
    return product;
  }

  void add_cost(const Cost& cost) {
    plan_.cost.macs = checked_add(plan_.cost.macs, cost.macs, "MACs");
    plan_.cost.written = checked_add(plan_.cost.written, cost.written, "elements written");
  }

  Plan plan_;
  double most_extra_;
};

}  // namespace

Plan with_one_tap_windows(const Plan& plan, double most_extra) {
  return OneTap(plan, most_extra).run();
}

}  // namespace syno
