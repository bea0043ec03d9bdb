// The access map of an operator: for every coordinate, how its value follows from the output iterators and the
// reductions; which coordinates the data and each weight are read at; and which windows mask a term.
//
//     y[o] = sum over r of mask(o, r) * x[data(o, r)] * product over t of W_t[weights[t](o, r)]
#pragma once

#include <string>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

/// One node; `a` and `b` are the coordinates below it.
struct Expression {
  ExpressionKind kind{};
  CoordinateId a = kNoCoordinate;
  CoordinateId b = kNoCoordinate;
  Size size;
  /// kCyclicShift: the amount.
  int amount = 0;
  /// kWindow: a + b - (size - 1) instead.
  bool causal = false;
  /// The extent of the coordinate: values are in 0..extent-1 wherever no mask cuts the term off.
  Size extent;
};

struct AccessMap {
  VariablesPtr variables;
  /// By coordinate of the operator's graph; what a node uses stands before it.
  std::vector<Expression> expressions;
  std::vector<CoordinateId> iterators;
  std::vector<CoordinateId> reductions;
  /// The coordinate of each input dimension.
  std::vector<CoordinateId> data;
  /// The coordinates of each weight's dimensions, in the operator's canonical order.
  std::vector<std::vector<CoordinateId>> weights;
  /// Every kWindow node: each masks the term when it falls outside, wherever its value goes.
  std::vector<CoordinateId> windows;

  const Expression& at(CoordinateId id) const { return expressions[static_cast<std::size_t>(id)]; }
};

AccessMap make_access_map(const Operator& op);

}  // namespace syno
