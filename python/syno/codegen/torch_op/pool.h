// The PyTorch operators syno::pool and syno::pool.out: windows over the maps of a network.
#pragma once

#include "tensors.h"

namespace {

/// Windows of kernel x kernel at a stride, over maps with padding around them that belongs to no window.
struct Windows {
  std::int64_t kernel[2], stride[2], padding[2], size[2], out[2];
};

struct Largest {
  static constexpr float kOutside = -__builtin_inff();
  // NaN stays.
  static float joined(float a, float b) { return a > b || a != a ? a : b; }
};
struct Sum {
  static constexpr float kOutside = 0.0f;
  static float joined(float a, float b) { return a + b; }
};

/// Rows [begin, end) of all maps. `row` has room for a row of a map with its padding.
template <class Join>
__attribute__((optimize("O3"))) void pool_rows(const Windows& w, const float* x, float* y,
                                               float factor, std::int64_t begin, std::int64_t end,
                                               float* row) {
  const std::int64_t width = w.size[1], room = std::max((w.out[1] - 1) * w.stride[1] + w.kernel[1],
                                                        width + w.padding[1]);
  std::fill(row, row + room, Join::kOutside);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t top = i % w.out[0] * w.stride[0] - w.padding[0];
    const std::int64_t first = std::max<std::int64_t>(top, 0),
                       last = std::min(top + w.kernel[0], w.size[0]);
    const float* __restrict const from = x + i / w.out[0] * (w.size[0] * width);
    float* __restrict const inside = row + w.padding[1];
    for (std::int64_t j = 0; j < width; ++j) inside[j] = from[first * width + j];
    for (std::int64_t r = first + 1; r < last; ++r)
      for (std::int64_t j = 0; j < width; ++j)
        inside[j] = Join::joined(from[r * width + j], inside[j]);
    float* __restrict const to = y + i * w.out[1];
    const auto across = [&](std::int64_t stride) {
      for (std::int64_t o = 0; o < w.out[1]; ++o) to[o] = row[o * stride];
      for (std::int64_t k = 1; k < w.kernel[1]; ++k)
        for (std::int64_t o = 0; o < w.out[1]; ++o)
          to[o] = Join::joined(row[o * stride + k], to[o]);
    };
    // Strides that are constants are loads of whole vectors.
    if (w.stride[1] == 1)
      across(1);
    else if (w.stride[1] == 2)
      across(2);
    else
      across(w.stride[1]);
    if (factor != 1.0f)
      for (std::int64_t o = 0; o < w.out[1]; ++o) to[o] *= factor;
  }
}

/// A row for each thread, which stays for its next call.
thread_local Workspace pool_row;

/// Sets the sizes of the results; false for windows that do not fit into the maps.
bool complete(Windows& w, bool average) {
  for (int d = 0; d < 2; ++d) {
    const bool right = w.kernel[d] > 0 && w.stride[d] > 0 && w.padding[d] >= 0 &&
                       2 * w.padding[d] <= w.kernel[d] && w.size[d] > 0 &&
                       w.size[d] + 2 * w.padding[d] >= w.kernel[d] &&
                       !(average && w.padding[d] > 0);
    if (!right) return false;
    w.out[d] = (w.size[d] + 2 * w.padding[d] - w.kernel[d]) / w.stride[d] + 1;
  }
  return true;
}

void pool_maps(const Windows& w, const float* from, float* to, std::int64_t maps, bool average) {
  const std::int64_t rows = maps * w.out[0];
  const float factor = average ? 1.0f / static_cast<float>(w.kernel[0] * w.kernel[1]) : 1.0f;
  const std::int64_t room = (w.out[1] - 1) * w.stride[1] + w.kernel[1] + w.size[1] + w.padding[1];
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    float* const row = pool_row.floats(room);
    if (average)
      pool_rows<Sum>(w, from, to, factor, begin, end, row);
    else
      pool_rows<Largest>(w, from, to, factor, begin, end, row);
  };
  const std::int64_t work = rows * w.kernel[0] * w.size[1];
  if (work < kLeastParallelMacs)
    some(0, rows);
  else
    torch::stable::parallel_for(
        0, rows, std::max<std::int64_t>(1, rows / torch::stable::get_num_threads()), some);
}

Tensor pool(const Tensor& x, const std::array<std::int64_t, 6>& sizes, bool average,
            const MaybeTensor& out) {
  check_kind(x, "x");
  if (aoti_torch_grad_mode_is_enabled()) check_grad(x, "x");
  if (x.dim() != 4)
    refuse("syno::pool: x has " + std::to_string(x.dim()) + " dimensions\n  expected: 4");
  const std::array<std::int64_t, 4> order = {0, 1, 2, 3};
  const auto shape = x.sizes();
  Dims given{}, made{};
  std::copy(shape.begin(), shape.end(), given.begin());
  made = given;
  Windows w{};
  for (int d = 0; d < 2; ++d)
    w.kernel[d] = sizes[d], w.stride[d] = sizes[2 + d], w.padding[d] = sizes[4 + d],
    w.size[d] = given[2 + d];
  if (!complete(w, average))
    refuse("syno::pool: windows that do not fit into x " + text(given.data(), 4));
  made[2] = w.out[0];
  made[3] = w.out[1];
  const Layout of_x = layout(given.data(), order.data(), 4, false, 1);
  const Layout of_y = layout(made.data(), order.data(), 4, false, 1);
  const Tensor data = in_order(x, of_x);
  const float* const from = data.const_data_ptr<float>();
  bool direct = true;
  if (out) {
    check_kind(*out, "out");
    check_shape(*out, "out", of_y, false);
    direct =
        has_strides(*out, of_y) && !overlap(out->mutable_data_ptr<float>(), floats_of(of_y, false),
                                            from, floats_of(of_x, false));
  }
  Tensor y = out && direct ? *out : empty(of_y);
  pool_maps(w, from, y.mutable_data_ptr<float>(), made[0] * made[1], average);
  if (!out || direct) return y;
  copy(*out, y);
  return *out;
}

}  // namespace
