// search/: what a specification refuses, enumeration of its operators, seeded draws.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/search/accept.h"
#include "syno/search/enumerate.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

Enumeration run_enumeration(const Specification& spec, const RuleSet& rules, std::int64_t max_depth,
                            std::int64_t max_nodes, const nb::object& progress) {
  EnumerateOptions options;
  options.max_depth = max_depth;
  options.max_nodes = max_nodes;
  options.rules = rules;
  // Called often enough that an interrupt from the keyboard ends a long enumeration.
  const EnumerateProgress watch = [&](std::int64_t depth, std::int64_t nodes, std::int64_t found) {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return progress.is_none() || nb::cast<bool>(progress(depth, nodes, found));
  };
  const nb::gil_scoped_release release;
  return enumerate(spec, options, watch);
}

std::vector<std::pair<std::string, std::string>> refusal_pairs(const Operator& op,
                                                               const Specification& spec,
                                                               const RuleSet& rules) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (RefusalReason& refusal : refusals(op, spec, rules))
    pairs.emplace_back(std::move(refusal.reason), std::move(refusal.text));
  return pairs;
}

}  // namespace

void bind_search(nb::module_& m) {
  m.def("refusals", &refusal_pairs, "op"_a, "spec"_a, "rules"_a,
        nb::call_guard<nb::gil_scoped_release>(),
        "(reason, text) of everything a specification has against an operator.");
  m.def("total_macs", &total_macs, "op"_a, "spec"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Multiply-adds over all layers that the operator fits, by multiplicity.");
  m.def("total_params", &total_params, "op"_a, "spec"_a, "Parameters over all those layers.");

  nb::class_<FoundOperator>(m, "FoundOperator", "An operator with its key under a specification.")
      .def_ro("op", &FoundOperator::op)
      .def_prop_ro("key", [](const FoundOperator& found) { return found.key.hex(); })
      .def_ro("depth", &FoundOperator::depth);
  nb::class_<Enumeration>(m, "Enumeration", "The operators of a specification up to a budget.")
      .def_ro("operators", &Enumeration::operators, "One a semantic key, by depth and key.")
      .def_ro("graphs", &Enumeration::graphs)
      .def_ro("structures", &Enumeration::structures)
      .def_ro("nodes", &Enumeration::nodes)
      .def_ro("complete_depth", &Enumeration::complete_depth,
              "The largest depth limit that was listed completely.")
      .def_ro("exhausted", &Enumeration::exhausted)
      .def_prop_ro("rejections", [](const Enumeration& e) {
        return std::map<std::string, std::int64_t>(e.rejections.begin(), e.rejections.end());
      });
  m.def("enumerate", &run_enumeration, "spec"_a, "rules"_a, "max_depth"_a = 0,
        "max_nodes"_a = 200'000, "progress"_a = nb::none(),
        nb::sig("def enumerate(spec: Specification, rules: RuleSet, max_depth: int = 0, "
                "max_nodes: int = 200000, progress: collections.abc.Callable[[int, int, int], "
                "bool] | None = None) -> Enumeration"),
        "Lists operators by iterative deepening. progress(depth limit, nodes, operators) is called "
        "now and then; False ends the enumeration like a spent budget. Deterministic.");
  nb::class_<UniformDraws>(m, "UniformDraws", "Distinct numbers below a count in seeded order.")
      .def(nb::init<std::uint64_t, std::uint64_t>(), "count"_a, "seed"_a)
      .def("at", &UniformDraws::at, "n"_a, "The n-th draw without replacement, n < count.")
      .def("__len__", &UniformDraws::count);
}

}  // namespace syno::bindings
