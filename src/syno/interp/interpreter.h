// The reference interpreter: the value of an operator by its definition, one term at a time. It is the witness that
// every plan and emitter is checked against, so it shares no code with them and does nothing clever.
//
// T is double, or std::int64_t for exact arithmetic, where an overflow is a UserError. `values` is the binding in the
// order of op.variables(). x has the shape of the input, weights[t] that of op.weight_shapes()[t]; a wrong shape is a
// UserError that names the tensor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/interp/tensor.h"

namespace syno {

/// Extents of input, output and weights under a binding.
struct OperatorShapes {
  std::vector<std::int64_t> input;
  std::vector<std::int64_t> output;
  std::vector<std::vector<std::int64_t>> weights;
};
OperatorShapes operator_shapes(const Operator& op, const Values& values);

/// y, of the output's shape.
template <class T>
Tensor<T> interpret(const Operator& op, const Values& values, const Tensor<T>& x,
                    const std::vector<Tensor<T>>& weights);

/// y at some output elements only, given by their row-major positions.
template <class T>
std::vector<T> interpret_at(const Operator& op, const Values& values, const Tensor<T>& x,
                            const std::vector<Tensor<T>>& weights,
                            std::span<const std::int64_t> positions);

template <class T>
struct Gradients {
  Tensor<T> x;
  std::vector<Tensor<T>> weights;
};

/// The gradients of sum(dy * y) with respect to x and every weight: the same index map, read the other way.
template <class T>
Gradients<T> gradients(const Operator& op, const Values& values, const Tensor<T>& x,
                       const std::vector<Tensor<T>>& weights, const Tensor<T>& dy);

/// |t| element by element. An operator of absolute values gives, for each result, the sum of the absolute terms that
/// rounding errors are measured against.
template <class T>
Tensor<T> absolute(const Tensor<T>& tensor);
template <class T>
std::vector<Tensor<T>> absolute(const std::vector<Tensor<T>>& tensors);

}  // namespace syno
