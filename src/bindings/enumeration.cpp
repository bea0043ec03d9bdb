// space/: enumerations that go on from depth limit to depth limit, their files, samples from them, reasons of rejections.
#include <fstream>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/rules/docs.h"
#include "syno/space/deepen.h"
#include "syno/space/reasons.h"
#include "syno/space/sampling.h"
#include "syno/space/space_file.h"
#include "syno/support/error.h"

#include "enumerating.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

std::pair<Space, std::string> run_deepening(const Specification& spec, const RuleSet& rules,
                                            std::int64_t max_depth, std::int64_t max_nodes,
                                            std::int64_t max_memory, double max_seconds,
                                            std::int64_t threads, const std::string& bound,
                                            const nb::object& progress, const nb::object& on_limit,
                                            const Space* before) {
  const EnumerateOptions options =
      enumeration_options(rules, max_depth, max_nodes, max_memory, max_seconds, threads, bound);
  const EnumerateProgress reports = watched(progress);
  const auto enumerated = [&on_limit](const Space& space) {
    const nb::gil_scoped_acquire acquire;
    if (!on_limit.is_none()) on_limit(nb::cast(space, nb::rv_policy::copy));
  };
  const LongCall call;
  EnumeratedSpace enumeration = deepen(spec, options, reports, enumerated, before);
  return {std::move(enumeration.space),
          std::string(enumeration_end_name(enumeration.end, options))};
}

void save(const Space& space, const std::string& path, const Specification& spec,
          const RuleSet& rules) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) throw UserError("cannot open '" + path + "' for writing");
  save_space(out, space, spec, rules);
  out.flush();
  if (!out) throw UserError("cannot write '" + path + "': is the disk full?");
}

Space load(const std::string& path, const std::string& name, const Specification& spec,
           const RuleSet& rules) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError("cannot read '" + name + "': no such file, or no permission");
  return load_space(in, name, spec, rules);
}

nb::dict described(const std::string& reason) {
  const ReasonInfo info = reason_info(reason);
  nb::dict result;
  result["group"] = info.group;
  result["subgroup"] = info.subgroup;
  result["doc"] = info.doc;
  return result;
}

std::vector<std::pair<std::string, std::string>> doc_parts(const std::string& wanted) {
  std::vector<std::string> names;
  for (const Rule* rule : catalogue()) {
    if (rule->id != wanted && rule->name != wanted) {
      names.push_back(std::string(rule->id) + " " + std::string(rule->name));
      continue;
    }
    std::vector<std::pair<std::string, std::string>> parts;
    for (RuleDocPart& part : rule_doc_parts(*rule))
      parts.emplace_back(std::string(part.heading), std::move(part.text));
    return parts;
  }
  // Says which rules there are.
  RuleSet().set(wanted, true);
  return {};
}

}  // namespace

void bind_listing(nb::module_& m) {
  m.def(
      "deepen", &run_deepening, "spec"_a, "rules"_a, "max_depth"_a = 0,
      "max_nodes"_a = EnumerateOptions().max_nodes, "max_memory"_a = 0, "max_seconds"_a = 0.0,
      "threads"_a = 0, "bound"_a = "full", "progress"_a = nb::none(), "on_limit"_a = nb::none(),
      "before"_a = nb::none(),
      nb::sig("def deepen(spec: Specification, rules: RuleSet, max_depth: int = 0, "
              "max_nodes: int = ..., max_memory: int = 0, max_seconds: float = 0.0, "
              "threads: int = 0, bound: str = 'full', progress: "
              "collections.abc.Callable[[EnumerateStatus], bool] | None = None, on_limit: "
              "collections.abc.Callable[[Space], None] | None = None, before: Space | None = None)"
              " -> tuple[Space, str]"),
      "Calls enumerate_space for one depth limit after the other. Returns the space and why the "
      "enumeration "
      "ended: complete, stopped, max_seconds, max_nodes, or max_nodes or max_memory. "
      "on_limit(space) is called "
      "with each complete space; `before` is a space to continue from.");
  m.def("save_space", &save, "space"_a, "path"_a, "spec"_a, "rules"_a, nb::call_guard<LongCall>(),
        "Writes an enumeration to a file, with its specification and rules.");
  m.def("load_space", &load, "path"_a, "name"_a, "spec"_a, "rules"_a, nb::call_guard<LongCall>(),
        "Reads an enumeration from a file. Raises UserError that names the differences if the file "
        "belongs to "
        "another specification or rule set. `name` is the name of the file in messages.");
  m.def(
      "sample_operators",
      [](const Space& space, const Specification& spec, std::uint64_t count, std::uint64_t seed,
         const std::string& by, std::int64_t threads) {
        return sample_operators(space, spec, count, seed, parse_stratify(by), threads);
      },
      "space"_a, "spec"_a, "count"_a, "seed"_a, "by"_a = "none", "threads"_a = 0,
      nb::call_guard<LongCall>(),
      "Samples the indices of distinct operators: uniformly, or stratified by quantiles of macs or "
      "params, or "
      "by multisets of primitives.");
  m.def("reason_groups", &reason_groups,
        "The groups of rejection reasons, in the order in which a search checks them.");
  m.def("reason_info", &described, "reason"_a,
        nb::sig("def reason_info(reason: str) -> dict[str, str]"),
        "The group, subgroup and doc of a rejection reason.");
  m.def("rule_doc_parts", &doc_parts, "rule"_a,
        "The doc of a rule, given by id or name, as (heading, text). The UserError for an unknown "
        "rule lists the "
        "rules.");
}

}  // namespace syno::bindings
