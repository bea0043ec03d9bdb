// The access map of an operator under one binding as tables: for the data and each weight, the element that a term
// reads, by the variables that it depends on.
//
//     y[o] = sum over r of x[data(o, r)] * product over t of W_t[weights[t](o, r)] * product of masks
//
// A table spans few of the variables, so that numeric code (least squares, for example) can gather each tensor on a
// small grid and leave the sums to products of matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

struct AccessTable {
  /// Numbers of variables, ascending: those of the output's dimensions first, then the reductions.
  std::vector<int> variables;
  /// Row-major over the extents of `variables`: the row-major position of the element that is read; -1 where a window
  /// falls outside, and the term is zero.
  std::vector<std::int64_t> index;
};

struct AccessTables {
  /// Of all variables.
  std::vector<std::int64_t> extents;
  /// How many of them are output dimensions.
  int outputs = 0;
  AccessTable data;
  std::vector<AccessTable> weights;
  /// Windows that no tensor is read through: 0, or -1 where the term is zero.
  std::vector<AccessTable> masks;
};

/// Throws UserError for a binding that gives no extents, and for tables of more than `most` elements.
AccessTables access_tables(const Operator& op, const Values& values,
                           std::int64_t most = std::int64_t{1} << 28);

}  // namespace syno
