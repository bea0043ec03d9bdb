// interp/: the reference interpreter on NumPy arrays, in float64 and int64, causality, and random operators for tests.
#include <algorithm>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "syno/features/factors.h"
#include "syno/interp/access_tables.h"
#include "syno/interp/causality.h"
#include "syno/interp/interpreter.h"
#include "syno/interp/moments.h"
#include "syno/interp/random_graph.h"
#include "syno/key/orbit.h"
#include "syno/spec/specification.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;
template <class T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<nb::numpy, T>;

template <class T>
Tensor<T> to_tensor(const Input<T>& array) {
  Tensor<T> tensor;
  for (std::size_t d = 0; d < array.ndim(); ++d)
    tensor.shape.push_back(static_cast<std::int64_t>(array.shape(d)));
  tensor.data.assign(array.data(), array.data() + array.size());
  return tensor;
}

template <class T>
std::vector<Tensor<T>> to_tensors(const std::vector<Input<T>>& arrays) {
  std::vector<Tensor<T>> tensors;
  for (const Input<T>& array : arrays) tensors.push_back(to_tensor<T>(array));
  return tensors;
}

// Hands `tensor` over to NumPy without a copy.
template <class T>
Output<T> to_array(Tensor<T> tensor) {
  auto owned = std::make_unique<std::vector<T>>(std::move(tensor.data));
  const std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
  T* data = owned->data();
  nb::capsule owner(owned.release(),
                    [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return Output<T>(data, shape.size(), shape.data(), owner);
}

template <class T>
Output<T> interpret_array(const Operator& op, const Bound& binding, const Input<T>& x,
                          const std::vector<Input<T>>& weights) {
  const Tensor<T> data = to_tensor<T>(x);
  const std::vector<Tensor<T>> tensors = to_tensors<T>(weights);
  Tensor<T> y;
  {
    const LongCall call;
    y = interpret(op, resolve(op, binding), data, tensors);
  }
  return to_array(std::move(y));
}

template <class T>
Output<T> interpret_positions(const Operator& op, const Bound& binding, const Input<T>& x,
                              const std::vector<Input<T>>& weights,
                              const std::vector<std::int64_t>& positions) {
  const Tensor<T> data = to_tensor<T>(x);
  const std::vector<Tensor<T>> tensors = to_tensors<T>(weights);
  Tensor<T> y;
  {
    const LongCall call;
    y.data = interpret_at<T>(op, resolve(op, binding), data, tensors, positions);
  }
  y.shape = {static_cast<std::int64_t>(y.data.size())};
  return to_array(std::move(y));
}

template <class T>
std::pair<Output<T>, std::vector<Output<T>>> gradient_arrays(const Operator& op,
                                                             const Bound& binding,
                                                             const Input<T>& x,
                                                             const std::vector<Input<T>>& weights,
                                                             const Input<T>& dy) {
  const Tensor<T> data = to_tensor<T>(x);
  const Tensor<T> direction = to_tensor<T>(dy);
  const std::vector<Tensor<T>> tensors = to_tensors<T>(weights);
  Gradients<T> result;
  {
    const LongCall call;
    result = gradients(op, resolve(op, binding), data, tensors, direction);
  }
  std::vector<Output<T>> arrays;
  for (Tensor<T>& tensor : result.weights) arrays.push_back(to_array(std::move(tensor)));
  return {to_array(std::move(result.x)), std::move(arrays)};
}

using Table = std::pair<std::vector<int>, Output<std::int64_t>>;

// The variables of a table, and its elements with a dimension for each of them.
Table to_table(AccessTable table, const std::vector<std::int64_t>& extents) {
  Tensor<std::int64_t> index;
  for (const int variable : table.variables)
    index.shape.push_back(extents[static_cast<std::size_t>(variable)]);
  index.data = std::move(table.index);
  return {std::move(table.variables), to_array(std::move(index))};
}

std::vector<Table> to_tables(std::vector<AccessTable> tables,
                             const std::vector<std::int64_t>& extents) {
  std::vector<Table> made;
  for (AccessTable& table : tables) made.push_back(to_table(std::move(table), extents));
  return made;
}

// Without conversions: of float32 the overload for integers would make other numbers.
template <class T>
void bind_interpreter(nb::module_& m) {
  m.def("interpret", &interpret_array<T>, "op"_a, "binding"_a, "x"_a.noconvert(),
        "weights"_a.noconvert(),
        "Computes y by the definition, one term at a time. Exact for int64; raises UserError on "
        "overflow.");
  m.def("interpret_at", &interpret_positions<T>, "op"_a, "binding"_a, "x"_a.noconvert(),
        "weights"_a.noconvert(), "positions"_a, "Computes y at row-major positions of the output.");
  m.def("gradients", &gradient_arrays<T>, "op"_a, "binding"_a, "x"_a.noconvert(),
        "weights"_a.noconvert(), "dy"_a.noconvert(),
        "Computes the gradients of sum(dy * y) with respect to x and every weight.");
}

}  // namespace

void bind_interp(nb::module_& m) {
  bind_interpreter<std::int64_t>(m);
  bind_interpreter<double>(m);

  nb::class_<OperatorShapes>(m, "OperatorShapes", "The extents of all tensors under a binding.")
      .def_ro("input", &OperatorShapes::input)
      .def_ro("output", &OperatorShapes::output)
      .def_ro("weights", &OperatorShapes::weights);
  m.def(
      "operator_shapes",
      [](const Operator& op, const Bound& binding) {
        return operator_shapes(op, resolve(op, binding));
      },
      "op"_a, "binding"_a, "Raises UserError if a size is not a positive integer.");
  m.def(
      "reads_future",
      [](const Operator& op, const Bound& binding, int output_dim, int input_dim) {
        const Values values = resolve(op, binding);
        const LongCall call;
        return in_words(future_reads(op, values, output_dim, input_dim), output_dim, input_dim);
      },
      "op"_a, "binding"_a, "output_dim"_a, "input_dim"_a,
      "A text that says where an output reads a later input; empty if none does.");

  m.def(
      "factors",
      [](const Operator& op, const Bound& binding, std::int64_t most) {
        const Values values = resolve(op, binding);
        AccessTables tables;
        Factors parts;
        {
          const LongCall call;
          tables = access_tables(op, values);
          parts = factors(tables, TapOrder::kByReads, most);
        }
        const auto count = static_cast<std::int64_t>(parts.reads.size());
        return std::tuple(tables.extents,
                          std::tuple(parts.blocks, parts.free, parts.rows, parts.taps, parts.ranks),
                          to_array(Tensor<std::int64_t>{{count}, std::move(parts.reads)}),
                          to_tables(std::move(tables.weights), tables.extents));
      },
      "op"_a, "binding"_a, "most"_a,
      "(extents of the variables, (blocks, free, rows, taps, ranks), where the data is read, "
      "weights), see factors.h. A weight is (its variables, an array with a dimension for each of "
      "them): the row-major position of its element, -1 where a window falls outside.");

  m.def(
      "mean_square",
      [](const Operator& op, const Bound& binding, std::uint64_t seed) {
        return mean_square(op, resolve(op, binding), seed);
      },
      "op"_a, "binding"_a, "seed"_a = 0, nb::call_guard<LongCall>(),
      "The mean of y^2 for data and weights of variance 1, over sampled elements if there are many "
      "terms.");

  m.def(
      "semantic_key",
      [](const Operator& op, const Specification& spec) {
        return semantic_key(op.in_table(spec.variables()), spec.bindings()).hex();
      },
      "op"_a, "spec"_a, nb::call_guard<LongCall>(),
      "Equal only for operators that are the same under every binding of the specification.");

  m.def(
      "orbit_keys",
      [](const std::vector<Operator>& operators, const Specification& spec) {
        OrbitKeyer keyer(spec);
        std::vector<std::string> keys;
        for (const Operator& op : operators) {
          check_interrupt();
          keys.push_back(keyer.key(op).hex());
        }
        return keys;
      },
      "operators"_a, "spec"_a, nb::call_guard<LongCall>(),
      "The keys of the orbits of operators under the symmetries of the specification.");

  m.def(
      "random_operator",
      [](std::uint64_t seed, bool batch, double unordered, double causal_windows, int min_weights,
         std::int64_t max_terms) {
        RandomOptions options;
        options.batch = batch;
        options.unordered = unordered;
        options.causal_windows = causal_windows;
        options.min_weights = min_weights;
        options.max_terms = max_terms;
        RandomOperator random = random_operator(seed, options);
        return std::pair<Operator, Bound>(std::move(random.op), random.binding.values());
      },
      "seed"_a, "batch"_a = false, "unordered"_a = 0.0, "causal_windows"_a = 0.0,
      "min_weights"_a = 0, "max_terms"_a = 20'000,
      "A random well-formed operator with a small binding, for tests. The same on every machine.");
}

}  // namespace syno::bindings
