// What happens to each element of an operator's result in registers, before it is stored:
//
//     y = activation(operator(x) * scale[c] + bias[c] + residual)
//
// Written as its parts in this order, joined by "+", each at most once: "scale+bias+residual+relu". An empty text is no
// epilogue. c is the index of one dimension of y, and residual has the shape and the memory order of y.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syno::cpp {

struct Epilogue {
  bool scale = false;
  bool bias = false;
  bool residual = false;
  /// The type of the runtime that applies it; empty: none.
  std::string activation;

  bool empty() const { return !scale && !bias && !residual && activation.empty(); }
  bool uses_channels() const { return scale || bias; }
};

/// UserError for another text.
Epilogue parse_epilogue(std::string_view text);

/// UserError unless `channel` is a dimension of y with this rank that has one value for all images.
void check_channel(int channel, std::size_t rank, bool batched);

/// UserError unless `order` names each of `rank` dimensions once, and the first one first where it is the batch.
/// what: "input_order" or "output_order".
void check_order(std::string_view what, const std::vector<int>& order, std::size_t rank,
                 bool batched);

}  // namespace syno::cpp
