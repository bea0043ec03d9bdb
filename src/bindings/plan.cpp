// plan/: the cheapest plan of an operator under a binding.
#include "syno/plan/plan.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"

namespace syno::bindings {

using namespace nb::literals;

void bind_plan(nb::module_& m) {
  nb::class_<Plan>(m, "Plan", "An operator under one binding as an ordered list of stages.")
      .def(
          "__init__",
          [](Plan* self, const Operator& op, const Bound& binding) {
            const LongCall call;
            new (self) Plan(plan(op, resolve(op, binding)));
          },
          "op"_a, "binding"_a, "The cheapest one: least MACs, then least elements written.")
      .def_prop_ro("text", &Plan::text, "One line a stage with shape and cost, and the totals.")
      .def_prop_ro("macs", [](const Plan& p) { return p.cost.macs; })
      .def_prop_ro(
          "written", [](const Plan& p) { return p.cost.written; },
          "Elements written by all stages.")
      .def_prop_ro("stage_macs",
                   [](const Plan& p) {
                     std::vector<std::int64_t> macs;
                     for (const Stage& stage : p.stages) macs.push_back(stage.cost.macs);
                     return macs;
                   })
      .def_prop_ro("views_first", &Plan::views_first,
                   "Whether every window and rotation of the data is made before anything is "
                   "multiplied or summed, as lowering step by step does.")
      .def_ro("params", &Plan::params)
      .def_ro("bytes_moved", &Plan::bytes_moved,
              "Bytes read and written by all stages, in float32; views move none.")
      .def_ro(
          "peak_bytes", &Plan::peak_bytes,
          "The most bytes of tensors that are alive at once: input, weights and output included.")
      .def_ro("fold_macs", &Plan::fold_macs,
              "MACs of the stages on weights alone, which `macs` does not count; 0 where none are "
              "folded.")
      .def("__str__", &Plan::text)
      .def_ro("fan_in", &Plan::fan_in, "Terms summed per element that each weight helps to make.")
      .def_ro("exact", &Plan::exact, "False when not every order of the steps was costed.");
  m.def(
      "plans",
      [](const Operator& op, const Bound& binding, std::size_t limit, bool fold_weights) {
        return plans(op, resolve(op, binding), {.limit = limit, .fold_weights = fold_weights});
      },
      "op"_a, "binding"_a, "limit"_a = 1, "fold_weights"_a = false, nb::call_guard<LongCall>(),
      "The cheapest plans, no two with the same stages, cheapest first.");
  m.def(
      "macs",
      [](const Operator& op, const Bound& binding) { return macs(op, resolve(op, binding)); },
      "op"_a, "binding"_a, nb::call_guard<LongCall>(), "Multiply-adds of the cheapest plan.");
  m.def(
      "params",
      [](const Operator& op, const Bound& binding) { return params(op, resolve(op, binding)); },
      "op"_a, "binding"_a, "Elements of all weights.");
}

}  // namespace syno::bindings
