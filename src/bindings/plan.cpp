// plan/: the cheapest plan of an operator under a binding.
#include "syno/plan/plan.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/plan/loop_nest.h"

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
          "op"_a, "binding"_a, "The cheapest plan: fewest MACs, then fewest elements written.")
      .def_prop_ro("text", &Plan::text,
                   "One line for each stage with shape and cost, and the totals.")
      .def_prop_ro("macs", [](const Plan& p) { return p.cost.macs; })
      .def_prop_ro(
          "macs_in_bounds", [](const Plan& p) { return loop_program(p).macs_in_bounds(); },
          "The MACs without those on weights alone, and without those on elements outside of a "
          "tensor, which are zero: compiled code may skip both.")
      .def_prop_ro(
          "written", [](const Plan& p) { return p.cost.written; },
          "The number of elements that all stages write.")
      .def_prop_ro("stage_macs",
                   [](const Plan& p) {
                     std::vector<std::int64_t> macs;
                     for (const Stage& stage : p.stages) macs.push_back(stage.cost.macs);
                     return macs;
                   })
      .def_prop_ro(
          "views_first", &Plan::views_first,
          "Whether every window and cyclic shift of the data is computed before anything is "
          "multiplied or summed, as in a lowering step by step.")
      .def_ro("params", &Plan::params)
      .def_ro(
          "bytes_moved", &Plan::bytes_moved,
          "The number of bytes that all stages read and write, in float32. Views move no bytes.")
      .def_ro("peak_bytes", &Plan::peak_bytes,
              "The peak memory in bytes, including input, weights and output.")
      .def_ro("fold_macs", &Plan::fold_macs,
              "MACs of the stages on weights alone, which `macs` does not count; 0 where none are "
              "folded.")
      .def("__str__", &Plan::text)
      .def_ro(
          "fan_in", &Plan::fan_in,
          "For each weight, the number of terms that are summed for an element that depends on it.")
      .def_ro("exact", &Plan::exact,
              "False if the costs of some orders of the steps were not computed.");
  m.def(
      "plans",
      [](const Operator& op, const Bound& binding, std::size_t limit, bool fold_weights) {
        return plans(op, resolve(op, binding), {.limit = limit, .fold_weights = fold_weights});
      },
      "op"_a, "binding"_a, "limit"_a = 1, "fold_weights"_a = false, nb::call_guard<LongCall>(),
      "The cheapest plans with different stages, sorted by cost.");
  m.def(
      "macs",
      [](const Operator& op, const Bound& binding) { return macs(op, resolve(op, binding)); },
      "op"_a, "binding"_a, nb::call_guard<LongCall>(), "The MACs of the cheapest plan.");
  m.def(
      "params",
      [](const Operator& op, const Bound& binding) { return params(op, resolve(op, binding)); },
      "op"_a, "binding"_a, "The number of elements of all weights.");
}

}  // namespace syno::bindings
