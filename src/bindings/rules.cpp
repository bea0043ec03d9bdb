// rules/: the catalogue, and sets of rules that are switched on.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "syno/rules/catalogue.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

nb::list rule_catalogue() {
  nb::list rules;
  for (const Rule* rule : catalogue()) {
    nb::dict described;
    described["id"] = rule->id;
    described["name"] = rule->name;
    described["kind"] = rule_kind_name(rule->kind);
    described["doc"] = rule->doc;
    rules.append(described);
  }
  return rules;
}

}  // namespace

void bind_rules(nb::module_& m) {
  m.def("rule_catalogue", &rule_catalogue, nb::sig("def rule_catalogue() -> list[dict[str, str]]"),
        "id, name, kind (exact, approximate, restriction) and doc of every rule.");
  nb::class_<RuleSet>(m, "RuleSet", "Which rules are on; all of them at first.")
      .def(nb::init<>())
      .def("set", &RuleSet::set, "rule"_a, "on"_a,
           "Switches one rule by id or name. UserError that lists the rules.")
      .def("is_on", &RuleSet::is_on, "rule"_a)
      .def_prop_ro("version", &RuleSet::version,
                   "Changes when a rule is added, changed or switched.");
}

}  // namespace syno::bindings
