// space/: what a specification rejects, enumerated spaces, enumeration of operators, seeded samples.
#include <fstream>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/space/accept.h"
#include "syno/space/enumerate.h"
#include "syno/support/error.h"

#include "described_options.h"
#include "enumerating.h"

namespace syno::bindings {

using namespace nb::literals;

// Called often enough that an interrupt from the keyboard ends a long enumeration.
EnumerateProgress watched(const nb::object& progress) {
  return [&progress](const EnumerateStatus& status) {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return progress.is_none() || nb::cast<bool>(progress(status));
  };
}

BoundMode bound_mode(const std::string& name) {
  if (name == "none") return BoundMode::kNone;
  if (name == "loose") return BoundMode::kLoose;
  if (name == "full") return BoundMode::kFull;
  throw Complaint("unknown bound '" + name + "'").expected("none, loose or full", name).error();
}

EnumerateOptions enumeration_options(const RuleSet& rules, std::int64_t max_depth,
                                     std::int64_t max_nodes, std::int64_t max_memory,
                                     double max_seconds, std::int64_t threads,
                                     const std::string& bound) {
  EnumerateOptions options;
  options.max_depth = max_depth;
  options.max_nodes = max_nodes;
  options.max_memory = max_memory;
  options.max_seconds = max_seconds;
  options.threads = threads;
  options.rules = rules;
  options.bound = bound_mode(bound);
  return options;
}

namespace {

Space run_enumerate_space(const Specification& spec, const RuleSet& rules, std::int64_t max_depth,
                          std::int64_t max_nodes, std::int64_t max_memory, double max_seconds,
                          std::int64_t threads, const std::string& bound, bool quality, bool keys,
                          std::int64_t first_depth, const nb::object& progress) {
  EnumerateOptions options =
      enumeration_options(rules, max_depth, max_nodes, max_memory, max_seconds, threads, bound);
  options.quality = quality;
  options.keys = keys;
  options.first_depth = first_depth;
  const EnumerateProgress reports = watched(progress);
  const LongCall call;
  return enumerate_space(spec, options, reports);
}

Enumeration run_enumeration(const Specification& spec, const RuleSet& rules, std::int64_t max_depth,
                            std::int64_t max_nodes, std::int64_t threads,
                            const nb::object& progress) {
  EnumerateOptions options;
  options.max_depth = max_depth;
  options.max_nodes = max_nodes;
  options.threads = threads;
  options.rules = rules;
  const EnumerateProgress reports = watched(progress);
  const LongCall call;
  return enumerate(spec, options, reports);
}

void save_space(const Space& space, const std::string& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) throw UserError("cannot open '" + path + "' for writing");
  space.save(out);
  out.flush();
  if (!out) throw UserError("cannot write '" + path + "': is the disk full?");
}

Space load_space(const std::string& path, const Specification& spec, const RuleSet& rules) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError("cannot read '" + path + "': no such file, or no permission");
  return Space::load(in, spec, rules.version());
}

std::vector<std::pair<std::string, std::string>> rejection_pairs(const Operator& op,
                                                                 const Specification& spec,
                                                                 const RuleSet& on) {
  const RuleSet rules = copied(on);
  const LongCall call;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (RejectionReason& rejection : rejections(op, spec, rules))
    pairs.emplace_back(std::move(rejection.reason), std::move(rejection.text));
  return pairs;
}

}  // namespace

void bind_space(nb::module_& m) {
  m.def("refusals", &rejection_pairs, "op"_a, "spec"_a, "rules"_a,
        "All rejection reasons of an operator under a specification, as (reason, text).");
  m.def("total_macs", &total_macs, "op"_a, "spec"_a, nb::call_guard<LongCall>(),
        "MACs over all layers that the operator fits, weighted by multiplicity.");
  m.def("total_params", &total_params, "op"_a, "spec"_a, nb::call_guard<LongCall>(),
        "Parameters over all layers that the operator fits, weighted by multiplicity.");

  nb::class_<FoundOperator>(m, "FoundOperator", "An operator with its key under a specification.")
      .def_ro("op", &FoundOperator::op)
      .def_prop_ro("key", [](const FoundOperator& found) { return found.key.hex(); })
      .def_ro("depth", &FoundOperator::depth);
  nb::class_<Enumeration>(m, "Enumeration",
                          "The operators of a specification, enumerated within a budget.")
      .def_ro("operators", &Enumeration::operators,
              "One operator for each semantic key, sorted by depth and key.")
      .def_ro("graphs", &Enumeration::graphs)
      .def_ro("structures", &Enumeration::structures)
      .def_ro("nodes", &Enumeration::nodes)
      .def_ro("complete_depth", &Enumeration::complete_depth,
              "The largest depth limit that was enumerated completely.")
      .def_ro("exhausted", &Enumeration::exhausted)
      .def_prop_ro("rejections", [](const Enumeration& e) {
        return std::map<std::string, std::int64_t>(e.rejections.begin(), e.rejections.end());
      });
  nb::class_<EnumerateStatus>(m, "EnumerateStatus", "The progress of an enumeration.")
      .def_ro("depth_limit", &EnumerateStatus::depth_limit)
      .def_ro("level", &EnumerateStatus::level,
              "The number of primitives of the graphs that are visited now.")
      .def_ro("nodes", &EnumerateStatus::nodes, "Partial graphs visited over all depth limits.")
      .def_ro("operators", &EnumerateStatus::operators,
              "The approximate number of operators found.")
      .def_ro("level_share", &EnumerateStatus::level_share,
              "The fraction of this level that is visited.");
  nb::class_<Space>(m, "Space",
                    "The enumerated graphs of a specification and the operators among them.")
      .def("__len__", &Space::operator_count)
      .def_prop_ro("node_count", &Space::node_count,
                   "The number of partial graphs, including the empty graph.")
      .def_prop_ro(
          "graph_count", [](const Space& s) { return s.graphs.size(); },
          "Complete graphs, accepted or not.")
      .def_ro("structures", &Space::structures, "The number of accepted graphs with a matching.")
      .def_ro("depth_limit", &Space::depth_limit)
      .def_ro("complete_depth", &Space::complete_depth)
      .def_ro("exhausted", &Space::exhausted)
      .def_ro("visited", &Space::visited, "Partial graphs visited over all depth limits.")
      .def_ro("spec_text", &Space::spec_text)
      .def_ro("rules", &Space::rules, "The version of the rule set.")
      .def_prop_ro("rejections",
                   [](const Space& s) {
                     return std::map<std::string, std::int64_t>(s.rejections.begin(),
                                                                s.rejections.end());
                   })
      .def("op", &Space::op, "spec"_a, "index"_a, "The operator with an index below len().")
      .def(
          "key", [](const Space& s, std::size_t i) { return s.operators.at(i).key.hex(); },
          "index"_a)
      .def(
          "depth", [](const Space& s, std::size_t i) { return s.depth(s.operators.at(i).node); },
          "index"_a, "The number of primitives of the operator.")
      .def("graphs_by_depth", &Space::graphs_by_depth)
      .def("operators_by_depth", &Space::operators_by_depth)
      .def("operators_by_primitives", &Space::operators_by_primitives)
      .def(
          "signature", [](const Space& s) { return s.signature().hex(); },
          "The same for any number of threads, names of variables and order of declaration.")
      .def("save", &save_space, "path"_a, nb::call_guard<LongCall>())
      .def_static("load", &load_space, "path"_a, "spec"_a, "rules"_a, nb::call_guard<LongCall>(),
                  "Reads a saved space. Raises UserError if the file is damaged or belongs to "
                  "another specification or rule set.");
  m.def(
      "enumerate_options", [] { return described_options(enumerate_options()); },
      nb::sig("def enumerate_options() -> list[dict[str, typing.Any]]"),
      "The name, type, default, minimum and doc of each budget of an enumeration.");
  m.def("enumerate_space", &run_enumerate_space, "spec"_a, "rules"_a, "max_depth"_a = 0,
        "max_nodes"_a = EnumerateOptions().max_nodes, "max_memory"_a = 0, "max_seconds"_a = 0.0,
        "threads"_a = 0, "bound"_a = "full", "quality"_a = true, "keys"_a = true,
        "first_depth"_a = 1, "progress"_a = nb::none(),
        nb::sig("def enumerate_space(spec: Specification, rules: RuleSet, max_depth: int = 0, "
                "max_nodes: int = ..., max_memory: int = 0, max_seconds: float = 0.0, "
                "threads: int = 0, bound: str = 'full', quality: bool = True, keys: bool = True, "
                "first_depth: int = 1, progress: collections.abc.Callable[[EnumerateStatus], "
                "bool] | None = None) -> Space"),
        "Enumerates the space level by level under increasing depth limits. progress(status) is "
        "called "
        "regularly; it ends the enumeration, as an exhausted budget does, by returning False. The "
        "result is the "
        "same for any number of threads.");
  m.def("enumerate", &run_enumeration, "spec"_a, "rules"_a, "max_depth"_a = 0,
        "max_nodes"_a = EnumerateOptions().max_nodes, "threads"_a = 0, "progress"_a = nb::none(),
        nb::sig("def enumerate(spec: Specification, rules: RuleSet, max_depth: int = 0, "
                "max_nodes: int = ..., threads: int = 0, progress: "
                "collections.abc.Callable[[EnumerateStatus], bool] | None = None) -> Enumeration"),
        "Calls enumerate_space and builds the operators.");
  nb::class_<UniformSamples>(m, "UniformSamples",
                             "The numbers below a count in a random order that depends on a seed.")
      .def(nb::init<std::uint64_t, std::uint64_t>(), "count"_a, "seed"_a)
      .def("at", &UniformSamples::at, "n"_a, "The n-th sample without replacement, for n < count.")
      .def("__len__", &UniformSamples::count);
}

}  // namespace syno::bindings
