// explain/: how an operator is built, and what keeps it out of a specification.
#include "syno/explain/explain.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <utility>
#include <vector>

#include "syno/explain/why_not.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

using Field = std::pair<const char*, nb::object>;

nb::dict dict_of(const std::vector<Field>& fields) {
  nb::dict result;
  for (const auto& [name, value] : fields) result[name] = value;
  return result;
}

// The value of a field.
template <class Value>
nb::object of(const Value& value) {
  return nb::cast(value);
}

nb::dict described(const BudgetUse& use) {
  return dict_of({{"variable", of(use.variable)},
                  {"used", of(use.used)},
                  {"budget", of(use.budget)},
                  {"within", of(use.within())}});
}

nb::dict described(const LimitUse& use) {
  return dict_of({{"limit", of(use.limit)},
                  {"used", of(use.used)},
                  {"allowed", of(use.allowed)},
                  {"within", of(use.within)}});
}

nb::dict described(const Misfit& misfit) {
  return dict_of({{"binding", of(misfit.binding)}, {"size", of(misfit.size)}});
}

nb::dict described(const RejectedStep& step) {
  return dict_of({{"step", of(step.step)}, {"reason", of(step.reason)}});
}

nb::dict described(const RejectionReason& rejection) {
  return dict_of({{"reason", of(rejection.reason)}, {"text", of(rejection.text)}});
}

nb::dict described(const Relaxation& change) {
  static constexpr const char* kKinds[] = {"budget", "limit", "rule"};
  return dict_of({{"kind", of(kKinds[static_cast<std::size_t>(change.kind)])},
                  {"name", of(change.name)},
                  {"from", of(change.from)},
                  {"to", of(change.to)}});
}

nb::dict described(const ExplainedStep& step);

template <class Item>
nb::list list_of(const std::vector<Item>& items) {
  nb::list result;
  for (const Item& item : items) result.append(described(item));
  return result;
}

nb::dict described(const ExplainedStep& step) {
  nb::dict rejected;
  for (const auto& [reason, count] : step.rejected) rejected[reason.c_str()] = count;
  return dict_of({{"step", of(step.step)},
                  {"children", of(step.children)},
                  {"refused", rejected},
                  {"others", list_of(step.others)}});
}

nb::dict described(const Usage& usage) {
  return dict_of({{"budgets", list_of(usage.budgets)},
                  {"limits", list_of(usage.limits)},
                  {"misfits", list_of(usage.misfits)},
                  {"macs", of(usage.macs)},
                  {"params", of(usage.params)},
                  {"pooling", of(usage.pooling)}});
}

nb::dict described(const Explanation& found) {
  return dict_of({{"listed", of(found.enumerated())},
                  {"key", of(found.key.hex())},
                  {"refusals", list_of(found.rejections)},
                  {"refused_match", of(found.rejected_match)},
                  {"reached", of(found.path.reached)},
                  {"obstacle", of(found.path.obstacle)},
                  {"obstacle_reason", of(found.path.obstacle_reason)},
                  {"steps", list_of(found.steps)},
                  {"usage", described(found.usage)}});
}

nb::dict explain_operator(const Operator& op, const Specification& spec, const RuleSet& on) {
  const RuleSet rules = copied(on);
  Explanation found;
  {
    const LongCall call;
    found = explain(op, spec, rules);
  }
  return described(found);
}

nb::dict why_not_operator(const Operator& op, const Specification& spec, const RuleSet& on,
                          std::int64_t max_nodes, double max_seconds) {
  const RuleSet rules = copied(on);
  WhyNot found;
  {
    const LongCall call;
    found = why_not(op, spec, rules, {max_nodes, max_seconds});
  }
  nb::object kept = nb::none();
  if (found.kept) {
    kept = dict_of({{"operator", of(found.kept->op)},
                    {"key", of(found.kept->key.hex())},
                    {"rules", of(found.kept->rules)},
                    {"near", of(found.kept->near)}});
  }
  return dict_of({{"admitted", of(found.admitted)},
                  {"explanation", described(found.explanation)},
                  {"kept", kept},
                  {"relaxations", list_of(found.relaxations)},
                  {"no_relaxation", of(found.no_relaxation)}});
}

}  // namespace

void bind_explain(nb::module_& m) {
  m.def("explain", &explain_operator, "op"_a, "spec"_a, "rules"_a,
        nb::sig("def explain(op: Operator, spec: Specification, rules: RuleSet) -> "
                "Explanation"),
        "Explains how a search reaches an operator: path, rules, budgets and limits. Raises "
        "UserError if "
        "the operator has other shapes or unknown variables.");
  m.def("why_not", &why_not_operator, "op"_a, "spec"_a, "rules"_a,
        "max_nodes"_a = WhyNotOptions().max_nodes, "max_seconds"_a = WhyNotOptions().max_seconds,
        nb::sig("def why_not(op: Operator, spec: Specification, rules: RuleSet, "
                "max_nodes: int = ..., max_seconds: float = ...) -> WhyNot"),
        "Explains why an operator is rejected, which equal operator is kept, and the smallest "
        "change that "
        "admits it.");
}

}  // namespace syno::bindings
