// An operator under one binding, taken apart into a matrix of weights and a gather of data.
//
//     y[block, free, row] = sum over taps of W[block, free, tap] * x[reads(block, row, tap)]
//     W[block, free, tap] = sum over ranks of the product over k of w_k[...]
//
// The variables of an operator are its output dimensions and its reductions. `rows` are output dimensions that the data
// depends on, `blocks` those that the data and a weight depend on, `free` the others; `taps` are reductions that the
// data depends on, `ranks` the others. For a convolution, W is its weight as a matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "syno/interp/access_tables.h"

namespace syno {

enum class TapOrder : std::uint8_t {
  kAscending,
  kByReads,  ///< by what they read, so that operators that read the same have equal `reads`
};

/// Numbers of variables, as in AccessTables.
struct Factors {
  std::vector<int> blocks, free, rows, taps, ranks;
  /// By (block, row, tap), row-major: the position in x, or -1 for a zero.
  std::vector<std::int64_t> reads;
};

/// Throws UserError where W has more than `most` elements.
Factors factors(const AccessTables& tables, TapOrder order, std::int64_t most);

bool depends_on(const AccessTable& table, int variable);

/// For all values of the variables of `group`, row-major: how far they move a position in an array with a dimension for
/// each of `of`.
std::vector<std::size_t> grid_offsets(const std::vector<int>& group, const std::vector<int>& of,
                                      const std::vector<std::int64_t>& extents);

}  // namespace syno
