// Dense tensors for the reference interpreter: a shape and row-major data, nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syno/support/checked.h"
#include "syno/support/text.h"

namespace syno {

template <class T>
struct Tensor {
  std::vector<std::int64_t> shape;
  /// Row-major: the last dimension is contiguous.
  std::vector<T> data;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// The product of a shape. Throws UserError when it does not fit in 64 bits.
inline std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    count = checked_multiply(count, extent, "the number of elements of a tensor");
  return count;
}

/// "[2, 3]"
inline std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + "]";
}

/// The most elements of a tensor that is made here: 2 GiB of doubles.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

/// Throws UserError when it would have more than kMaxElements.
template <class T>
Tensor<T> zeros(std::vector<std::int64_t> shape) {
  const std::int64_t count = element_count(shape);
  if (count > kMaxElements) {
    throw Complaint("a tensor of the shape " + shape_text(shape) + " is too large to be computed")
        .expected("at most " + with_thousands(kMaxElements) + " elements", with_thousands(count))
        .hint("use smaller sizes")
        .error();
  }
  return {std::move(shape), std::vector<T>(static_cast<std::size_t>(count))};
}

}  // namespace syno
