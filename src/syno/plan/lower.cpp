#include "syno/plan/lower.h"

#include <algorithm>
#include <bit>

#include "syno/plan/convolution.h"
#include "syno/plan/names.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

using Dims = std::vector<int>;

bool contains(const Dims& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

int place_of(const Dims& dims, int dim) {
  const auto place = std::find(dims.begin(), dims.end(), dim);
  ensure(place != dims.end(), "lower: a tensor lacks a dimension");
  return static_cast<int>(place - dims.begin());
}

// Dimensions of a plan are numbered as the coordinates of the graph: dim i is coordinate i.
class Lowering {
 public:
  Lowering(const Network& network, bool separate_weights)
      : network_(network),
        keys_(placement_keys(network)),
        separate_(separate_weights),
        done_(network.nothing_to_do()) {
    plan_.dims = name_dims(network);
    const auto& match = network.op().match();
    plan_.input = add_tensor({TensorKind::kInput, -1, Dims(match.begin(), match.end())});
    data_ = plan_.input;
    const auto& weights = network.graph().weights();
    for (std::size_t w = 0; w < weights.size(); ++w) {
      plan_.weights.push_back(add_tensor({TensorKind::kWeight, static_cast<int>(w),
                                          Dims(weights[w].dims.begin(), weights[w].dims.end())}));
    }
    plan_.fan_in.assign(weights.size(), 1);
  }

  Plan run(const Order& order) {
    for (const PlanMove& move : order.moves) {
      switch (move.kind) {
        case MoveKind::kView: view_data(move.step); break;
        case MoveKind::kContraction: contract(move); break;
        case MoveKind::kSum: sum(dims_of(move.reduces)); break;
        case MoveKind::kScale: scale(dims_of(move.reduces)); break;
      }
      done_ |= executed_by(move);
      if (move.kind == MoveKind::kView) views_.push_back(move.step);
    }
    finish();
    plan_.exact = order.exact;
    ensure(plan_.cost.macs == order.cost.macs, "lower: the stages do not cost what the order does");
    return std::move(plan_);
  }

 private:
  int add_tensor(PlanTensor tensor) {
    of_weights_alone_.push_back(tensor.kind == TensorKind::kWeight);
    plan_.tensors.push_back(std::move(tensor));
    return static_cast<int>(plan_.tensors.size()) - 1;
  }
  const Dims& dims(int tensor) const { return plan_.tensor(tensor).dims; }
  std::int64_t extent(int dim) const { return plan_.dim(dim).extent; }

  std::int64_t elements(const Dims& of, const char* what) const {
    std::int64_t product = 1;
    for (const int dim : of) product = checked_multiply(product, extent(dim), what);
    return product;
  }

  Dims dims_of(StepSet reduces) const {
    Dims found;
    for (std::size_t s = 0; s < network_.step_count(); ++s) {
      if ((reduces & step_bit(s)) != 0) found.push_back(network_.step(s).out[0]);
    }
    return found;
  }

  // Appends a stage; its result has the dimensions `result`.
  int add_stage(Stage stage, Dims result) {
    stage.cost.written = elements(result, "elements written");
    switch (stage.kind) {
      case StageKind::kPermute:
      case StageKind::kSplit:
      case StageKind::kMerge:
      case StageKind::kSlice:
      case StageKind::kExpand: stage.cost.written = 0; break;
      default: break;
    }
    stage.output = add_tensor({TensorKind::kValue, -1, std::move(result)});
    if (separate_ && of_weights_alone_[static_cast<std::size_t>(stage.input)]) {
      plan_.fold_macs = checked_add(plan_.fold_macs, stage.cost.macs, "MACs");
      of_weights_alone_[static_cast<std::size_t>(stage.output)] = true;
      plan_.fold_stages.push_back(std::move(stage));
      return plan_.fold_stages.back().output;
    }
    plan_.cost.macs = checked_add(plan_.cost.macs, stage.cost.macs, "MACs");
    plan_.cost.written = checked_add(plan_.cost.written, stage.cost.written, "elements written");
    plan_.stages.push_back(std::move(stage));
    return plan_.stages.back().output;
  }

  Stage stage_on(StageKind kind, int input, int axis) const {
    Stage stage;
    stage.kind = kind;
    stage.input = input;
    stage.axis = axis;
    return stage;
  }

  int permute(int tensor, const Dims& wanted) {
    if (dims(tensor) == wanted) return tensor;
    Stage stage = stage_on(StageKind::kPermute, tensor, -1);
    for (const int dim : wanted) stage.order.push_back(place_of(dims(tensor), dim));
    return add_stage(std::move(stage), wanted);
  }

  int expand(int tensor, int dim, int axis) {
    Dims result = dims(tensor);
    result.insert(result.begin() + axis, dim);
    return add_stage(stage_on(StageKind::kExpand, tensor, axis), std::move(result));
  }

  // --- views, for the data and for weights alike -----------------------------------------------------------------

  int replace_dim(StageKind kind, int tensor, int from, const Dims& to, std::int64_t amount) {
    const int axis = place_of(dims(tensor), from);
    Dims result = dims(tensor);
    result.erase(result.begin() + axis);
    result.insert(result.begin() + axis, to.begin(), to.end());
    Stage stage = stage_on(kind, tensor, axis);
    stage.amount = amount;
    return add_stage(std::move(stage), std::move(result));
  }

  int merge(int tensor, const Step& step) {
    const int quotient = step.out[0];
    const int remainder = step.out[1];
    if (!contains(dims(tensor), quotient))
      tensor = expand(tensor, quotient, place_of(dims(tensor), remainder));
    if (!contains(dims(tensor), remainder))
      tensor = expand(tensor, remainder, place_of(dims(tensor), quotient) + 1);
    Dims adjacent = dims(tensor);
    std::erase(adjacent, remainder);
    adjacent.insert(adjacent.begin() + place_of(adjacent, quotient) + 1, remainder);
    tensor = permute(tensor, adjacent);
    Dims result = dims(tensor);
    const int axis = place_of(result, quotient);
    result.erase(result.begin() + axis, result.begin() + axis + 2);
    result.insert(result.begin() + axis, step.in[0]);
    return add_stage(stage_on(StageKind::kMerge, tensor, axis), std::move(result));
  }

  static std::int64_t padding_before(const Step& unfold, std::int64_t window) {
    return unfold.causal ? window - 1 : window / 2;
  }

  int window(int tensor, const Step& step) {
    const int place = step.in[0];
    const int index = step.in[1];
    const int axis = place_of(dims(tensor), step.out[0]);
    Dims result = dims(tensor);
    result[static_cast<std::size_t>(axis)] = place;
    Stage stage = stage_on(StageKind::kWindow, tensor, axis);
    stage.amount = extent(index);
    stage.before = padding_before(step, extent(index));
    stage.after = extent(index) - 1 - stage.before;
    if (contains(result, index)) {
      stage.kind = StageKind::kShear;
      stage.second_axis = place_of(result, index);
    } else {
      result.push_back(index);
    }
    return add_stage(std::move(stage), std::move(result));
  }

  // A tensor without the coordinates that `step` produced is not changed by it.
  int view(int tensor, std::size_t s) {
    const Step& step = network_.step(s);
    const Dims& has = dims(tensor);
    const bool first = contains(has, step.out[0]);
    const PrimitiveInfo& info = step.info();
    if (info.cuts()) return first || contains(has, step.out[1]) ? merge(tensor, step) : tensor;
    if (!first) return tensor;
    if (info.slides()) return window(tensor, step);
    if (info.joins())
      return replace_dim(StageKind::kSplit, tensor, step.out[0], {step.in[0], step.in[1]}, 0);
    if (info.scales())
      return replace_dim(StageKind::kSlice, tensor, step.out[0], {step.in[0]},
                         network_.step_size(s));
    ensure(info.permutes(), "lower: not a view");
    return replace_dim(StageKind::kRoll, tensor, step.out[0], {step.in[0]}, step.amount);
  }

  // --- the data -------------------------------------------------------------------------------------------------

  // An Unfold of the data that is executed but not taken yet: the data still has the dimension that it produced. Strides of
  // its place and of its index may wait with it.
  struct Waiting {
    std::size_t unfold = 0;
    int place = -1;
    int index = -1;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::vector<std::size_t> strides;
  };

  // Takes the windows that wait and for which `wanted` holds.
  template <class Predicate>
  void take_windows(Predicate wanted) {
    for (std::size_t i = 0; i < waiting_.size();) {
      const Waiting waiting = waiting_[i];
      if (!wanted(waiting)) {
        ++i;
        continue;
      }
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      data_ = window(data_, network_.step(waiting.unfold));
      for (const std::size_t stride : waiting.strides) data_ = view(data_, stride);
    }
  }
  void take_all_windows() {
    take_windows([](const Waiting&) { return true; });
  }

  // Whether the Stride `s` is one of a window that waits; it waits with it.
  bool waits_with_window(std::size_t s) {
    const Step& step = network_.step(s);
    if (!step.info().scales()) return false;
    for (Waiting& waiting : waiting_) {
      const bool of_place = step.out[0] == waiting.place;
      if (!of_place && step.out[0] != waiting.index) continue;
      std::int64_t& factor = of_place ? waiting.stride : waiting.dilation;
      factor = checked_multiply(factor, network_.step_size(s), "a stride");
      (of_place ? waiting.place : waiting.index) = step.in[0];
      waiting.strides.push_back(s);
      return true;
    }
    return false;
  }

  void view_data(std::size_t s) {
    const Step& step = network_.step(s);
    if (waits_with_window(s)) return;
    take_windows([&](const Waiting& waiting) {
      return std::any_of(step.out.begin(), step.out.end(), [&](CoordinateId id) {
        return id != kNoCoordinate && (id == waiting.place || id == waiting.index);
      });
    });
    if (!step.info().slides()) {
      data_ = view(data_, s);
      return;
    }
    CoordinateSet present;
    for (const int dim : dims(data_)) present.set(static_cast<std::size_t>(dim));
    // Nothing depends on the place of this window, but the terms outside are zero all the same.
    if (network_.unfold_is_bare(s, done_, present)) {
      // Behind the batch, which stays in front.
      int axis = 0;
      const Dims& has = dims(data_);
      while (axis < static_cast<int>(has.size()) &&
             plan_.dim(has[static_cast<std::size_t>(axis)]).role == DimRole::kFree) {
        ++axis;
      }
      data_ = expand(data_, step.out[0], axis);
    }
    if (!contains(dims(data_), step.out[0])) return;
    if (contains(dims(data_), step.in[1])) {
      data_ = window(data_, step);
    } else {
      waiting_.push_back({s, step.in[0], step.in[1], 1, 1, {}});
    }
  }

  Dims sorted(Dims of) const {
    std::sort(of.begin(), of.end(), [&](int a, int b) {
      return keys_[static_cast<std::size_t>(a)] < keys_[static_cast<std::size_t>(b)];
    });
    return of;
  }

  // The weight of a contraction after the views executed so far.
  int viewed_weight(std::size_t s) {
    int weight = plan_.weights[network_.weight_of(s)];
    for (const std::size_t done_view : views_) weight = view(weight, done_view);
    return weight;
  }

  // The product of two weights, without the dimensions `summed`.
  int multiply(int a, int b, const Dims& summed) {
    Dims all = dims(a);
    for (const int dim : dims(b)) {
      if (!contains(all, dim)) all.push_back(dim);
    }
    Stage stage = stage_on(StageKind::kContraction, a, -1);
    stage.weight = b;
    stage.summed = summed;
    stage.cost.macs = elements(all, "MACs");
    std::erase_if(all, [&](int dim) { return contains(summed, dim); });
    return add_stage(std::move(stage), std::move(all));
  }

  // The weights of a move as one, multiplied and summed before the data comes.
  int folded_weight(const PlanMove& move) {
    std::vector<int> waiting{viewed_weight(move.step)};
    for (std::size_t s = 0; s < network_.step_count(); ++s) {
      if ((move.folded >> s & 1) != 0) waiting.push_back(viewed_weight(s));
    }
    Dims left = dims_of(move.offline);
    // Sums those that no tensor from place `from` on has.
    const auto take_summed = [&](const Dims& has, std::size_t from) {
      Dims summed;
      std::erase_if(left, [&](int dim) {
        bool later = false;
        for (std::size_t i = from; i < waiting.size(); ++i)
          later = later || contains(dims(waiting[i]), dim);
        if (later || !contains(has, dim)) return false;
        summed.push_back(dim);
        return true;
      });
      return summed;
    };
    int product = waiting[0];
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      Dims all = dims(product);
      const Dims& more = dims(waiting[i]);
      all.insert(all.end(), more.begin(), more.end());
      product = multiply(product, waiting[i], take_summed(all, i + 1));
    }
    if (const Dims summed = take_summed(dims(product), waiting.size()); !summed.empty())
      product = sum_of(product, summed);
    ensure(left.empty(), "lower: a sum of weights is left over");
    return product;
  }

  void contract(const PlanMove& move) {
    const Dims summed = dims_of(move.reduces);
    const std::size_t w = network_.weight_of(move.step);
    const int weight = folded_weight(move);
    const Dims held = dims(weight);

    // Windows that this stage sums may be taken inside of it; at most two, as libraries have it.
    std::vector<SpatialDim> windows;
    take_windows([&](const Waiting& waiting) {
      const Step& unfold = network_.step(waiting.unfold);
      const std::int64_t before = padding_before(unfold, extent(unfold.in[1]));
      const std::int64_t reach = waiting.dilation * (extent(waiting.index) - 1);
      // Where the end is not read, something must be left.
      const bool inside = contains(held, waiting.index) && !contains(held, waiting.place) &&
                          contains(summed, waiting.index) && !contains(summed, waiting.place) &&
                          extent(unfold.out[0]) + reach - before > 0 && windows.size() < 2;
      if (!inside) return true;
      windows.push_back({unfold.out[0], waiting.place, waiting.index, before, reach - before,
                         waiting.stride, waiting.dilation});
      return false;
    });
    const auto convolution = move.windows_apart
                                 ? std::nullopt
                                 : match_convolution(plan_, dims(data_), held, summed, windows);
    if (convolution) {
      waiting_.clear();
    } else {
      take_all_windows();
    }

    Dims all = dims(data_);
    for (const SpatialDim& spatial : convolution ? windows : std::vector<SpatialDim>{})
      std::replace(all.begin(), all.end(), spatial.padded, spatial.dim);
    for (const int dim : dims(weight)) {
      if (!contains(all, dim)) all.push_back(dim);
    }
    Stage stage = stage_on(StageKind::kContraction, data_, -1);
    stage.weight = weight;
    stage.summed = summed;
    stage.cost.macs = elements(all, "MACs");
    Dims left;
    std::copy_if(all.begin(), all.end(), std::back_inserter(left),
                 [&](int dim) { return !contains(summed, dim); });
    Dims result = sorted(left);
    if (convolution) {
      stage.kind = StageKind::kConvolution;
      stage.convolution = *convolution;
      result = convolution_output(*convolution);
    }
    data_ = add_stage(std::move(stage), std::move(result));
    plan_.fan_in[w] = checked_multiply(unassigned_, elements(summed, "fan-in"), "fan-in");
    unassigned_ = 1;
    last_weight_ = static_cast<int>(w);
  }

  int sum_of(int tensor, const Dims& summed) {
    Stage stage = stage_on(StageKind::kSum, tensor, -1);
    stage.summed = summed;
    stage.cost.macs = elements(dims(tensor), "MACs");
    Dims left;
    std::copy_if(dims(tensor).begin(), dims(tensor).end(), std::back_inserter(left),
                 [&](int dim) { return !contains(summed, dim); });
    return add_stage(std::move(stage), std::move(left));
  }

  void sum(const Dims& summed) {
    take_all_windows();
    data_ = sum_of(data_, summed);
    unassigned_ = checked_multiply(unassigned_, elements(summed, "fan-in"), "fan-in");
  }

  void scale(const Dims& summed) {
    take_all_windows();
    Stage stage = stage_on(StageKind::kScale, data_, -1);
    stage.amount = elements(summed, "a sum of equal terms");
    stage.cost.macs = elements(dims(data_), "MACs");
    // Equal terms: the variance grows with the square of their number.
    const std::int64_t square = checked_multiply(stage.amount, stage.amount, "fan-in");
    unassigned_ = checked_multiply(unassigned_, square, "fan-in");
    const Dims same = dims(data_);
    data_ = add_stage(std::move(stage), same);
  }

  void finish() {
    take_all_windows();
    Dims wanted;
    for (std::size_t d = 0; d < network_.graph().output().size(); ++d)
      wanted.push_back(static_cast<int>(d));
    Dims present;
    std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(present),
                 [&](int dim) { return contains(dims(data_), dim); });
    ensure(present.size() == dims(data_).size(), "lower: a dimension is left over");
    data_ = permute(data_, present);
    for (const int dim : wanted) {
      if (!contains(dims(data_), dim)) data_ = expand(data_, dim, dim);
    }
    if (last_weight_ >= 0) {
      std::int64_t& fan_in = plan_.fan_in[static_cast<std::size_t>(last_weight_)];
      fan_in = checked_multiply(fan_in, unassigned_, "fan-in");
    }
    plan_.output = data_;
  }

  const Network& network_;
  std::vector<std::vector<int>> keys_;
  /// Whether stages on weights alone stand apart.
  bool separate_;
  std::vector<bool> of_weights_alone_;
  Plan plan_;
  StepSet done_ = 0;
  int data_ = -1;
  /// Views executed so far; a weight goes through them when it is multiplied in.
  std::vector<std::size_t> views_;
  std::vector<Waiting> waiting_;
  std::int64_t unassigned_ = 1;
  int last_weight_ = -1;
};

}  // namespace

Plan lower(const Network& network, const Order& order, bool separate_weights) {
  return Lowering(network, separate_weights).run(order);
}

}  // namespace syno
