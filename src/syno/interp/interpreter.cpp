#include "syno/interp/interpreter.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "syno/interp/program.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// Some hundred microseconds.
constexpr std::uint32_t kTermsPerPoll = 4096;
constexpr double kMostTerms = 1e12;
// Of an operator with one weight; more take longer.
constexpr double kTermsPerSecond = 5e7;

[[noreturn]] void overflow() {
  throw UserError(
      "overflow in exact integer arithmetic: a result does not fit in 64 bits\n"
      "  hint: use smaller values, or float64");
}

double multiply(double a, double b) {
  return a * b;
}
std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}
void accumulate(double& sum, double term) {
  sum += term;
}
void accumulate(std::int64_t& sum, std::int64_t term) {
  if (__builtin_add_overflow(sum, term, &sum)) overflow();
}
double magnitude(double a) {
  return std::abs(a);
}
std::int64_t magnitude(std::int64_t a) {
  std::int64_t result = a;
  if (a < 0 && __builtin_sub_overflow(std::int64_t{0}, a, &result)) overflow();
  return result;
}

template <class T>
void check(const Tensor<T>& tensor, const std::vector<std::int64_t>& shape,
           const std::string& name) {
  if (tensor.shape != shape) {
    throw Complaint(name + " has the wrong shape")
        .expected(shape_text(shape), shape_text(tensor.shape))
        .error();
  }
  if (static_cast<std::int64_t>(tensor.data.size()) != element_count(shape)) {
    throw Complaint(name + " does not hold as many elements as its shape says")
        .expected(std::to_string(element_count(shape)) + " elements for " + shape_text(shape),
                  std::to_string(tensor.data.size()))
        .error();
  }
}

template <class T>
void check_arguments(const Program& program, const Tensor<T>& x,
                     const std::vector<Tensor<T>>& weights) {
  check(x, program.shape(program.data), "the input x");
  if (weights.size() != program.weights.size()) {
    throw Complaint("the wrong number of weights")
        .expected(std::to_string(program.weights.size()), std::to_string(weights.size()))
        .error();
  }
  for (std::size_t t = 0; t < weights.size(); ++t)
    check(weights[t], program.shape(program.weights[t]), "weight " + std::to_string(t));
}

// Refuses what would run for hours: `elements` outputs, each the sum over all reductions.
void check_terms(const Program& program, std::int64_t elements) {
  double terms = static_cast<double>(elements);
  for (const CoordinateId id : program.reductions) terms *= static_cast<double>(program.extent(id));
  if (terms <= kMostTerms) return;
  std::array<char, 64> amounts{};
  std::snprintf(amounts.data(), amounts.size(), "%.2g, about %.2g hours", terms,
                terms / kTermsPerSecond / 3600);
  throw Complaint("there are too many terms to be computed one at a time")
      .where("output " + shape_text(program.shape(program.iterators)) + ", reductions " +
             shape_text(program.shape(program.reductions)))
      .expected("at most 1e+12 terms", amounts.data())
      .hint("use smaller sizes, fewer output positions, or the code of a plan")
      .error();
}

// The sum of all terms of the output whose iterators stand in `slots`.
template <class T>
T sum_terms(const Program& program, const Tensor<T>& x, const std::vector<Tensor<T>>& weights,
            std::vector<std::int64_t>& slots, InterruptPoll& poll) {
  T sum = 0;
  for_each_term(program, slots, poll, [&] {
    T term = x.data[static_cast<std::size_t>(flat_index(program.data, program.extents, slots))];
    for (std::size_t t = 0; t < weights.size(); ++t) {
      const std::int64_t at = flat_index(program.weights[t], program.extents, slots);
      term = multiply(term, weights[t].data[static_cast<std::size_t>(at)]);
    }
    accumulate(sum, term);
  });
  return sum;
}

}  // namespace

OperatorShapes operator_shapes(const Operator& op, const Values& values) {
  const Program program(make_access_map(op), values);
  OperatorShapes shapes{program.shape(program.data), program.shape(program.iterators), {}};
  for (const auto& dims : program.weights) shapes.weights.push_back(program.shape(dims));
  return shapes;
}

template <class T>
Tensor<T> interpret(const Operator& op, const Values& values, const Tensor<T>& x,
                    const std::vector<Tensor<T>>& weights) {
  const Program program(make_access_map(op), values);
  check_arguments(program, x, weights);
  check_terms(program, element_count(program.shape(program.iterators)));
  Tensor<T> y = zeros<T>(program.shape(program.iterators));
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  InterruptPoll poll(kTermsPerPoll);
  for (T& element : y.data) {
    element = sum_terms(program, x, weights, slots, poll);
    next_index(program.iterators, program.extents, slots);
  }
  return y;
}

template <class T>
std::vector<T> interpret_at(const Operator& op, const Values& values, const Tensor<T>& x,
                            const std::vector<Tensor<T>>& weights,
                            std::span<const std::int64_t> positions) {
  const Program program(make_access_map(op), values);
  check_arguments(program, x, weights);
  const std::int64_t count = element_count(program.shape(program.iterators));
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  InterruptPoll poll(kTermsPerPoll);
  check_terms(program, static_cast<std::int64_t>(positions.size()));
  std::vector<T> result;
  for (const std::int64_t position : positions) {
    if (position < 0 || position >= count) {
      throw Complaint("an output position is outside the output")
          .where("output " + shape_text(program.shape(program.iterators)))
          .expected("0.." + std::to_string(count - 1), std::to_string(position))
          .error();
    }
    std::int64_t rest = position;
    for (std::size_t d = program.iterators.size(); d-- > 0;) {
      const CoordinateId id = program.iterators[d];
      slots[static_cast<std::size_t>(id)] = rest % program.extent(id);
      rest /= program.extent(id);
    }
    result.push_back(sum_terms(program, x, weights, slots, poll));
  }
  return result;
}

template <class T>
Gradients<T> gradients(const Operator& op, const Values& values, const Tensor<T>& x,
                       const std::vector<Tensor<T>>& weights, const Tensor<T>& dy) {
  const Program program(make_access_map(op), values);
  check_arguments(program, x, weights);
  check(dy, program.shape(program.iterators), "the gradient dy");
  check_terms(program, static_cast<std::int64_t>(dy.data.size()));
  Gradients<T> result{zeros<T>(x.shape), {}};
  for (const Tensor<T>& weight : weights) result.weights.push_back(zeros<T>(weight.shape));

  // The operands of a term: x first, then the weights.
  const std::size_t operands = 1 + weights.size();
  std::vector<std::size_t> at(operands);
  std::vector<T> factor(operands);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  InterruptPoll poll(kTermsPerPoll);
  for (const T outer : dy.data) {
    for_each_term(program, slots, poll, [&] {
      for (std::size_t t = 0; t < operands; ++t) {
        const auto& dims = t == 0 ? program.data : program.weights[t - 1];
        at[t] = static_cast<std::size_t>(flat_index(dims, program.extents, slots));
        factor[t] = t == 0 ? x.data[at[t]] : weights[t - 1].data[at[t]];
      }
      for (std::size_t t = 0; t < operands; ++t) {
        T term = outer;
        for (std::size_t other = 0; other < operands; ++other) {
          if (other != t) term = multiply(term, factor[other]);
        }
        accumulate(t == 0 ? result.x.data[at[t]] : result.weights[t - 1].data[at[t]], term);
      }
    });
    next_index(program.iterators, program.extents, slots);
  }
  return result;
}

template <class T>
Tensor<T> absolute(const Tensor<T>& tensor) {
  Tensor<T> result = tensor;
  for (T& element : result.data) element = magnitude(element);
  return result;
}

template <class T>
std::vector<Tensor<T>> absolute(const std::vector<Tensor<T>>& tensors) {
  std::vector<Tensor<T>> result;
  for (const Tensor<T>& tensor : tensors) result.push_back(absolute(tensor));
  return result;
}

using Reals = std::vector<Tensor<double>>;
using Integers = std::vector<Tensor<std::int64_t>>;
using Positions = std::span<const std::int64_t>;

template Tensor<double> interpret(const Operator&, const Values&, const Tensor<double>&,
                                  const Reals&);
template Tensor<std::int64_t> interpret(const Operator&, const Values&, const Tensor<std::int64_t>&,
                                        const Integers&);
template std::vector<double> interpret_at(const Operator&, const Values&, const Tensor<double>&,
                                          const Reals&, Positions);
template std::vector<std::int64_t> interpret_at(const Operator&, const Values&,
                                                const Tensor<std::int64_t>&, const Integers&,
                                                Positions);
template Gradients<double> gradients(const Operator&, const Values&, const Tensor<double>&,
                                     const Reals&, const Tensor<double>&);
template Gradients<std::int64_t> gradients(const Operator&, const Values&,
                                           const Tensor<std::int64_t>&, const Integers&,
                                           const Tensor<std::int64_t>&);
template Tensor<double> absolute(const Tensor<double>&);
template Tensor<std::int64_t> absolute(const Tensor<std::int64_t>&);
template Reals absolute(const Reals&);
template Integers absolute(const Integers&);

}  // namespace syno
