// graph/: partial graphs and operators as values, and their steps as plain data.
#include "syno/graph/graph.h"

#include <algorithm>
#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "syno/graph/draw.h"
#include "syno/graph/json_form.h"
#include "syno/graph/operator.h"
#include "syno/support/error.h"

#include "bindings.h"
#include "json_data.h"
#include "steps.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;
/// Size text, unordered, causal.
using DimensionData = std::tuple<std::string, bool, bool>;

}  // namespace

StepData step_data(const Graph& graph, const Step& step) {
  const PrimitiveInfo& info = primitive_info(step.primitive);
  StepData data;
  data.op = std::string(info.name);
  for (int i = 0; i < info.consumes; ++i)
    data.in.push_back(graph.name(step.in[static_cast<std::size_t>(i)]));
  for (int i = 0; i < info.produces; ++i)
    data.out.push_back(graph.name(step.out[static_cast<std::size_t>(i)]));
  if (!step.size.is_one()) data.size = step.size.text(*graph.variables());
  data.amount = step.amount;
  data.causal = step.causal;
  for (const WeightDim& dim : step.dims)
    data.dims.emplace_back(graph.name(dim.coordinate), std::string(role_name(dim.role)));
  return data;
}

namespace {

std::vector<StepData> steps_data(const Graph& graph) {
  std::vector<StepData> steps;
  for (const Step& step : graph.steps()) steps.push_back(step_data(graph, step));
  return steps;
}

std::vector<DimensionData> shape_data(const Shape& shape, const Variables& variables) {
  std::vector<DimensionData> data;
  for (const Dimension& dim : shape)
    data.emplace_back(dim.size.text(variables), dim.unordered, dim.causal);
  return data;
}

Shape shape_from_data(const std::vector<DimensionData>& data, const Variables& variables) {
  Shape shape;
  for (const auto& [text, unordered, causal] : data)
    shape.push_back({Size::parse(text, variables), unordered, causal});
  return shape;
}

WeightRole find_role(std::string_view name) {
  for (const WeightRole role : {WeightRole::kKeep, WeightRole::kDrop, WeightRole::kJoin}) {
    if (role_name(role) == name) return role;
  }
  throw UserError("unknown role '" + std::string(name) + "'; roles: keep, drop, join");
}

// Takes one step; returns the coordinates it produced.
std::vector<CoordinateId> apply_step(
    Graph& graph, std::string_view op, const std::vector<CoordinateId>& in, std::string_view size,
    int amount, bool causal, const std::vector<std::pair<CoordinateId, std::string>>& dims) {
  const auto primitive = find_primitive(op);
  if (!primitive) throw UserError("unknown primitive '" + std::string(op) + "'");
  const PrimitiveInfo& info = primitive_info(*primitive);
  ensure(in.size() == static_cast<std::size_t>(info.consumes), "a step's inputs are not counted");
  Step step;
  step.primitive = *primitive;
  std::copy(in.begin(), in.end(), step.in.begin());
  if (!size.empty()) step.size = Size::parse(size, *graph.variables());
  step.amount = amount;
  step.causal = causal;
  for (const auto& [coordinate, role] : dims) step.dims.push_back({coordinate, find_role(role)});
  const Step& applied = graph.apply(std::move(step));
  return {applied.out.begin(), applied.out.begin() + info.produces};
}

std::vector<std::string> primitive_names() {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < kPrimitiveCount; ++p)
    names.emplace_back(primitive_info(static_cast<Primitive>(p)).name);
  return names;
}

std::map<std::string, int> counts(const Graph& graph) {
  std::map<std::string, int> named;
  const auto all = graph.primitive_counts();
  for (std::size_t i = 0; i < kPrimitiveCount; ++i) {
    if (all[i] > 0) named[std::string(primitive_info(static_cast<Primitive>(i)).name)] = all[i];
  }
  return named;
}

void bind_step(nb::module_& m) {
  nb::class_<StepData>(m, "Step", "One step of a graph as plain data, coordinates by name.")
      .def_ro("op", &StepData::op)
      .def_ro("inputs", &StepData::in)
      .def_ro("out", &StepData::out)
      .def_ro("size", &StepData::size, "The block, factor or extent; empty if there is none.")
      .def_ro("amount", &StepData::amount)
      .def_ro("causal", &StepData::causal)
      .def_ro("dims", &StepData::dims, "(coordinate, role) of each dimension of the weight.");
}

}  // namespace

void bind_graph(nb::module_& m) {
  m.def("primitive_names", &primitive_names, "The names of all primitives, in their order.");
  bind_step(m);

  nb::class_<Graph>(m, "Graph", "A partial graph, built from the output towards the input.")
      .def(
          "__init__",
          [](Graph* self, std::vector<std::string> names, const std::vector<DimensionData>& out) {
            const VariablesPtr variables = Variables::make(std::move(names));
            new (self) Graph(variables, shape_from_data(out, *variables));
          },
          "variables"_a, "output"_a,
          "The empty graph over these variables. output: (size, unordered, causal) for each "
          "dimension.")
      .def_static("parse", &parse_graph, "text"_a, "Reads the text of a partial graph.")
      .def_prop_ro("text", &graph_text, "The canonical text.")
      .def("apply", &apply_step, "op"_a, "inputs"_a, "size"_a = "", "amount"_a = 0,
           "causal"_a = false, "dims"_a = std::vector<std::pair<CoordinateId, std::string>>(),
           "Applies one step and returns the coordinates that it produces.")
      .def_prop_ro(
          "frontier",
          [](const Graph& g) {
            return std::vector<CoordinateId>(g.frontier().begin(), g.frontier().end());
          },
          "The coordinates at which the data is read.")
      .def("name", &Graph::name, "coordinate"_a, "The canonical name of a coordinate.")
      .def(
          "extent",
          [](const Graph& g, CoordinateId id) { return g.extent(id).text(*g.variables()); },
          "coordinate"_a, "The extent of a coordinate as a size string.")
      .def("copy", [](const Graph& g) { return g; })
      .def("root", &Graph::root, "The empty graph of the same output and variables.")
      .def_prop_ro("steps", &steps_data)
      .def_prop_ro("depth", &Graph::depth)
      .def_prop_ro("primitives", &counts, "How many steps use each primitive.")
      .def("dot", nb::overload_cast<const Graph&>(&to_dot),
           "A drawing in the language of Graphviz.");

  nb::class_<Operator>(m, "Operator", "A complete graph matched to its input, in canonical form.")
      .def(
          "__init__",
          [](Operator* self, const Graph& graph, const std::vector<DimensionData>& input,
             std::vector<CoordinateId> match) {
            new (self)
                Operator(graph, shape_from_data(input, *graph.variables()), std::move(match));
          },
          "graph"_a, "input"_a, "match"_a,
          "match: for each input dimension, the coordinate of the frontier at which it is read.")
      .def_static("parse", &Operator::parse, "text"_a, "Reads the versioned text.")
      .def_static(
          "from_json",
          [](nb::handle data) { return read_operator_json(json_value(data, "the operator")); },
          "data"_a.none(), "Reads the JSON form: a document as str or bytes, or its content.")
      .def_prop_ro("text", &Operator::text, "The canonical text.")
      .def_prop_ro("json", &operator_json, "The JSON form.")
      .def_prop_ro("batch", &Operator::batch, "The variable of the batch; None without one.")
      .def_prop_ro(
          "structure", [](const Operator& op) { return op.structure().hex(); },
          "A hash of the canonical form, 32 hexadecimal digits.")
      .def_prop_ro("input",
                   [](const Operator& op) { return shape_data(op.input(), *op.variables()); })
      .def_prop_ro("output",
                   [](const Operator& op) { return shape_data(op.output(), *op.variables()); })
      .def_prop_ro("match",
                   [](const Operator& op) {
                     std::vector<std::string> names;
                     for (const CoordinateId id : op.match()) names.push_back(op.graph().name(id));
                     return names;
                   })
      .def_prop_ro("steps", [](const Operator& op) { return steps_data(op.graph()); })
      .def_prop_ro("variables", [](const Operator& op) { return op.variables()->names(); })
      .def_prop_ro(
          "primitives", [](const Operator& op) { return counts(op.graph()); },
          "How many steps use each primitive; a contraction counts once.")
      .def_prop_ro("depth", [](const Operator& op) { return op.graph().depth(); })
      .def_prop_ro(
          "weights", [](const Operator& op) { return op.graph().weights().size(); },
          "The number of weights.")
      .def_prop_ro(
          "windows",
          [](const Operator& op) {
            const auto& steps = op.graph().steps();
            return std::count_if(steps.begin(), steps.end(),
                                 [](const Step& step) { return step.info().slides(); });
          },
          "The number of steps that slide a window.")
      .def(
          "dot", [](const Operator& op) { return to_dot(op); },
          "A drawing in the language of Graphviz.")
      .def("__hash__",
           [](const Operator& op) { return static_cast<nb::ssize_t>(op.structure().low); })
      // NOLINTNEXTLINE(misc-redundant-expression)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, arg: object, /) -> bool"));
}

}  // namespace syno::bindings
