// space/: listings that go on from depth limit to depth limit, their files, draws from them, reasons of rejections.
#include <fstream>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/rules/docs.h"
#include "syno/space/deepen.h"
#include "syno/space/draws.h"
#include "syno/space/reasons.h"
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
  EnumerateOptions options;
  options.max_depth = max_depth;
  options.max_nodes = max_nodes;
  options.max_memory = max_memory;
  options.max_seconds = max_seconds;
  options.threads = threads;
  options.rules = rules;
  options.bound = bound_mode(bound);
  const EnumerateProgress reports = watched(progress);
  const auto listed = [&on_limit](const Space& space) {
    const nb::gil_scoped_acquire acquire;
    if (!on_limit.is_none()) on_limit(nb::cast(space, nb::rv_policy::copy));
  };
  const LongCall call;
  Listing listing = deepen(spec, options, reports, listed, before);
  return {std::move(listing.space), std::string(listing_end_name(listing.end, options))};
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
      "list_space one depth limit after the other, and why it ended: complete, stopped, "
      "max_seconds, max_nodes, or max_nodes or max_memory. on_limit(space) is called with each "
      "complete one; `before` is what is listed already.");
  m.def("save_space", &save, "space"_a, "path"_a, "spec"_a, "rules"_a, nb::call_guard<LongCall>(),
        "Writes the file of an enumeration: what it was made for, and the space.");
  m.def("load_space", &load, "path"_a, "name"_a, "spec"_a, "rules"_a, nb::call_guard<LongCall>(),
        "Refuses files of other specifications or rules, and says what differs. `name` stands in "
        "messages.");
  m.def(
      "draw_operators",
      [](const Space& space, const Specification& spec, std::uint64_t count, std::uint64_t seed,
         const std::string& by, std::int64_t threads) {
        return draw_operators(space, spec, count, seed, parse_stratify(by), threads);
      },
      "space"_a, "spec"_a, "count"_a, "seed"_a, "by"_a = "none", "threads"_a = 0,
      nb::call_guard<LongCall>(),
      "Indices of distinct operators: uniform, or spread over quantiles of macs or params, or over "
      "multisets of primitives.");
  m.def("reason_groups", &reason_groups, "Groups of reasons, in the order in which a search asks.");
  m.def("reason_info", &described, "reason"_a,
        nb::sig("def reason_info(reason: str) -> dict[str, str]"),
        "group, subgroup and doc of a reason that a search counts.");
  m.def("rule_doc_parts", &doc_parts, "rule"_a,
        "(heading, text) of a rule's doc, by id or name. UserError that lists the rules.");
}

}  // namespace syno::bindings
