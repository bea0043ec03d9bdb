// Runs the stages of a plan element by element, in exact integers, for tests. It reads what plan.h says of each kind of
// stage and nothing else.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "syno/interp/tensor.h"
#include "syno/plan/plan.h"

namespace syno {

class StageRunner {
 public:
  using Numbers = std::vector<std::int64_t>;

  StageRunner(const Plan& plan, const Tensor<std::int64_t>& x,
              const std::vector<Tensor<std::int64_t>>& weights)
      : plan_(plan), values_(plan.tensors.size()) {
    of(plan.input) = x.data;
    for (std::size_t w = 0; w < weights.size(); ++w) of(plan.weights[w]) = weights[w].data;
    for (const Stage& stage : plan.fold_stages) run(stage);
    for (const Stage& stage : plan.stages) run(stage);
  }
  const Numbers& output() { return of(plan_.output); }

 private:
  Numbers& of(int tensor) { return values_[static_cast<std::size_t>(tensor)]; }

  static void for_each_index(const Numbers& shape,
                             const std::function<void(const Numbers&)>& visit) {
    Numbers index(shape.size(), 0);
    for (;;) {
      visit(index);
      std::size_t d = shape.size();
      while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }

  std::int64_t read(int tensor, const Numbers& index) {
    const Numbers shape = plan_.shape(tensor);
    std::int64_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (index[d] < 0 || index[d] >= shape[d]) return 0;
      place = place * shape[d] + index[d];
    }
    return of(tensor)[static_cast<std::size_t>(place)];
  }

  // The sum over the dimensions of `all` that the result lacks of the product of what `factors` read.
  void contract(const Stage& stage, const std::vector<int>& all,
                const std::function<std::int64_t(const std::vector<std::int64_t>&)>& product) {
    const std::vector<int>& out = plan_.tensor(stage.output).dims;
    const Numbers out_shape = plan_.shape(stage.output);
    Numbers result(of_size(out_shape), 0);
    Numbers shape;
    for (const int dim : all) shape.push_back(plan_.dim(dim).extent);
    Numbers by_dim(plan_.dims.size(), 0);
    for_each_index(shape, [&](const Numbers& index) {
      for (std::size_t d = 0; d < all.size(); ++d)
        by_dim[static_cast<std::size_t>(all[d])] = index[d];
      std::int64_t place = 0;
      for (std::size_t d = 0; d < out.size(); ++d)
        place = place * out_shape[d] + by_dim[static_cast<std::size_t>(out[d])];
      result[static_cast<std::size_t>(place)] += product(by_dim);
    });
    of(stage.output) = std::move(result);
  }

  static std::size_t of_size(const Numbers& shape) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    return size;
  }

  std::int64_t at(int tensor, const Numbers& by_dim) {
    Numbers index;
    for (const int dim : plan_.tensor(tensor).dims)
      index.push_back(by_dim[static_cast<std::size_t>(dim)]);
    return read(tensor, index);
  }

  static void add(std::vector<int>& dims, int dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) dims.push_back(dim);
  }

  void run(const Stage& stage) {
    std::vector<int> all;
    switch (stage.kind) {
      case StageKind::kSum:
        for (const int dim : plan_.tensor(stage.input).dims) add(all, dim);
        contract(stage, all, [&](const Numbers& by) { return at(stage.input, by); });
        return;
      case StageKind::kContraction:
        for (const int tensor : {stage.input, stage.weight}) {
          for (const int dim : plan_.tensor(tensor).dims) add(all, dim);
        }
        contract(stage, all,
                 [&](const Numbers& by) { return at(stage.input, by) * at(stage.weight, by); });
        return;
      case StageKind::kConvolution: {
        for (const int dim : plan_.tensor(stage.weight).dims) add(all, dim);
        for (const int dim : plan_.tensor(stage.output).dims) add(all, dim);
        for (const int dim : stage.summed) add(all, dim);
        contract(stage, all, [&](const Numbers& by) {
          Numbers data = by;
          for (const SpatialDim& spatial : stage.convolution.spatial) {
            const auto value = [&](int dim) {
              return dim < 0 ? 0 : by[static_cast<std::size_t>(dim)];
            };
            data[static_cast<std::size_t>(spatial.padded)] =
                spatial.stride * value(spatial.dim) + spatial.dilation * value(spatial.window) -
                spatial.before;
          }
          return at(stage.input, data) * at(stage.weight, by);
        });
        return;
      }
      default: break;
    }
    const Numbers in = plan_.shape(stage.input);
    const Numbers out = plan_.shape(stage.output);
    const auto axis = static_cast<std::size_t>(std::max(stage.axis, 0));
    Numbers result;
    for_each_index(out, [&](const Numbers& index) {
      Numbers from = index;
      const auto place = from.begin() + static_cast<std::ptrdiff_t>(axis);
      std::int64_t factor = 1;
      switch (stage.kind) {
        case StageKind::kPermute:
          for (std::size_t d = 0; d < index.size(); ++d)
            from[static_cast<std::size_t>(stage.order[d])] = index[d];
          break;
        case StageKind::kSplit:
          *place = index[axis] * out[axis + 1] + index[axis + 1];
          from.erase(place + 1);
          break;
        case StageKind::kMerge:
          *place = index[axis] / in[axis + 1];
          from.insert(place + 1, index[axis] % in[axis + 1]);
          break;
        case StageKind::kRoll: {
          const std::int64_t n = in[axis];
          *place = ((index[axis] + stage.amount) % n + n) % n;
          break;
        }
        case StageKind::kSlice: *place *= stage.amount; break;
        case StageKind::kExpand: from.erase(place); break;
        case StageKind::kWindow:
          *place += index.back() - stage.before;
          from.pop_back();
          break;
        case StageKind::kShear:
          *place += index[static_cast<std::size_t>(stage.second_axis)] - stage.before;
          break;
        case StageKind::kDiagonal:
          factor = index[axis] == index.back() ? 1 : 0;
          from.pop_back();
          break;
        case StageKind::kScale: factor = stage.amount; break;
        default: break;
      }
      result.push_back(factor * read(stage.input, from));
    });
    of(stage.output) = std::move(result);
  }

  const Plan& plan_;
  std::vector<Numbers> values_;
};

}  // namespace syno
