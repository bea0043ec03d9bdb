// A nest as a matrix product of two operands that lie as they lie: no operand is packed, because both change with every
// step of a training.
//
//     y[row][column] += scale * sum over terms of a[row][term] * b[term][column]
//
//   outer    axes of the result with a product each
//   rows     axes of the result that `a` alone has: a constant step apart in `a` and in the result, if they are more
//            than a tile has
//   columns  axes of the result that `b` alone has: side by side in `b` and in the result; vectors lie over them
//   terms    summed axes
//
// An operand that does not lie like this, or has conditions, is copied into a panel first, and a result that does not
// is computed elsewhere and copied.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syno/emit/training/panel.h"
#include "syno/plan/loop_nest.h"

namespace syno::training {

struct Product {
  /// Operand 0 is `a`, operand 1 is `b`; both affine, without conditions. The store is affine, too.
  LoopNest nest;
  std::vector<int> outer;
  std::vector<int> rows;
  std::vector<int> columns;
  std::vector<int> terms;

  std::int64_t product(const std::vector<int>& axes) const;
};

/// Rows that fit into one tile, in the registers that its columns leave.
std::int64_t most_in_tile(const Product& product);

/// How a nest becomes a product: what is copied before and behind it.
struct ProductForm {
  Product product;
  /// Copies of operand `a` and `b`, where they are needed; the nest reads what they store.
  std::optional<Panel> panels[2];
  /// The result is stored to a buffer of this shape first, unless it is empty, in the order of the axes `result`.
  std::vector<std::int64_t> result_shape;
  std::vector<int> result;
  /// An estimate, in cycles of a core with vectors of 16 floats.
  double cost = 0;
};

struct ProductOptions {
  /// The result is summed over many calls before it is copied.
  bool many = false;
  /// The order of the result's dimensions may be chosen: `result` is set, and costs nothing.
  bool any_order = false;
  /// The axis of the result that its readers want to lie innermost, or -1.
  int innermost = -1;
};

/// The cheapest form; nothing when the nest is not made for a product.
std::optional<ProductForm> find_product(const LoopProgram& program, const LoopNest& nest,
                                        const ProductOptions& options);

}  // namespace syno::training
