// explain/: how an operator is built, and what keeps it out of a specification.
#include "syno/explain/explain.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/explain/why_not.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

nb::dict used(const Usage& usage) {
  nb::list budgets;
  for (const BudgetUse& use : usage.budgets) {
    nb::dict entry;
    entry["variable"] = use.variable;
    entry["used"] = use.used;
    entry["budget"] = use.budget;
    entry["within"] = use.within();
    budgets.append(entry);
  }
  nb::list limits;
  for (const LimitUse& use : usage.limits) {
    nb::dict entry;
    entry["limit"] = use.limit;
    entry["used"] = use.used;
    entry["allowed"] = use.allowed;
    entry["within"] = use.within;
    limits.append(entry);
  }
  nb::list misfits;
  for (const Misfit& misfit : usage.misfits) {
    nb::dict entry;
    entry["binding"] = misfit.binding;
    entry["size"] = misfit.size;
    misfits.append(entry);
  }
  nb::dict result;
  result["budgets"] = budgets;
  result["limits"] = limits;
  result["misfits"] = misfits;
  result["macs"] = usage.macs;
  result["params"] = usage.params;
  result["pooling"] = usage.pooling;
  return result;
}

nb::list explained(const std::vector<ExplainedStep>& steps) {
  nb::list result;
  for (const ExplainedStep& step : steps) {
    nb::dict refused;
    for (const auto& [reason, count] : step.refused) refused[reason.c_str()] = count;
    nb::list others;
    for (const RefusedStep& other : step.others) {
      nb::dict entry;
      entry["step"] = other.step;
      entry["reason"] = other.reason;
      others.append(entry);
    }
    nb::dict entry;
    entry["step"] = step.step;
    entry["children"] = step.children;
    entry["refused"] = refused;
    entry["others"] = others;
    result.append(entry);
  }
  return result;
}

nb::dict described(const Explanation& found) {
  nb::list refusals;
  for (const RefusalReason& refusal : found.refusals) {
    nb::dict entry;
    entry["reason"] = refusal.reason;
    entry["text"] = refusal.text;
    refusals.append(entry);
  }
  nb::dict result;
  result["listed"] = found.listed();
  result["key"] = found.key.hex();
  result["refusals"] = refusals;
  result["refused_match"] = found.refused_match;
  result["reached"] = found.path.reached;
  result["obstacle"] = found.path.obstacle;
  result["obstacle_reason"] = found.path.obstacle_reason;
  result["steps"] = explained(found.steps);
  result["usage"] = used(found.usage);
  return result;
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

nb::dict described(const Relaxation& change) {
  static constexpr const char* kKinds[] = {"budget", "limit", "rule"};
  nb::dict result;
  result["kind"] = kKinds[static_cast<std::size_t>(change.kind)];
  result["name"] = change.name;
  result["from"] = change.from;
  result["to"] = change.to;
  return result;
}

nb::dict why_not_operator(const Operator& op, const Specification& spec, const RuleSet& on,
                          std::int64_t max_nodes, double max_seconds) {
  const RuleSet rules = copied(on);
  WhyNot found;
  {
    const LongCall call;
    found = why_not(op, spec, rules, {max_nodes, max_seconds});
  }
  nb::list relaxations;
  for (const Relaxation& change : found.relaxations) relaxations.append(described(change));
  nb::dict result;
  result["admitted"] = found.admitted;
  result["explanation"] = described(found.explanation);
  result["kept"] = nb::none();
  if (found.kept) {
    nb::dict kept;
    kept["operator"] = nb::cast(found.kept->op);
    kept["key"] = found.kept->key.hex();
    kept["rules"] = found.kept->rules;
    kept["near"] = found.kept->near;
    result["kept"] = kept;
  }
  result["relaxations"] = relaxations;
  result["no_relaxation"] = found.no_relaxation;
  return result;
}

}  // namespace

void bind_explain(nb::module_& m) {
  m.def("explain", &explain_operator, "op"_a, "spec"_a, "rules"_a,
        nb::sig("def explain(op: Operator, spec: Specification, rules: RuleSet) -> "
                "dict[str, typing.Any]"),
        "How a search comes to an operator: path, rules, budgets and limits. UserError when the "
        "operator has other shapes or unknown variables.");
  m.def("why_not", &why_not_operator, "op"_a, "spec"_a, "rules"_a,
        "max_nodes"_a = WhyNotOptions().max_nodes, "max_seconds"_a = WhyNotOptions().max_seconds,
        nb::sig("def why_not(op: Operator, spec: Specification, rules: RuleSet, "
                "max_nodes: int = ..., max_seconds: float = ...) -> dict[str, typing.Any]"),
        "What keeps an operator out, the equal one that is kept, and the smallest change that "
        "admits it.");
}

}  // namespace syno::bindings
