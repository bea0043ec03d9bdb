// rules/: the catalogue, sets of rules that are switched on, rules of users, and trying rules out.
#include <memory>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <utility>

#include "syno/explain/rule_check.h"
#include "syno/rules/catalogue.h"
#include "syno/support/error.h"

#include "bindings.h"
#include "steps.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

nb::dict described(const Rule& rule) {
  nb::dict described;
  described["id"] = rule.id;
  described["name"] = rule.name;
  described["kind"] = rule_kind_name(rule.kind);
  described["doc"] = rule.doc;
  return described;
}

nb::list rule_catalogue() {
  nb::list rules;
  for (const Rule* rule : catalogue()) rules.append(described(*rule));
  return rules;
}

RuleKind find_kind(const std::string& name) {
  for (const RuleKind kind : {RuleKind::kExact, RuleKind::kApproximate, RuleKind::kRestriction}) {
    if (rule_kind_name(kind) == name) return kind;
  }
  throw Complaint("unknown kind of rule '" + name + "'")
      .expected("exact, approximate or restriction", "'" + name + "'")
      .error();
}

PrimitiveSet find_steps(const std::vector<std::string>& names) {
  if (names.empty()) return PrimitiveSet::all();
  PrimitiveSet set({});
  for (const std::string& name : names) {
    const auto primitive = find_primitive(name);
    if (!primitive) throw UserError("unknown primitive '" + name + "'");
    set.add(*primitive);
  }
  return set;
}

// A function of Python that threads of the library ask. Each call takes the interpreter's lock, which no thread of an
// enumeration holds while it waits for another: bindings release it before they list anything.
class PythonRule {
 public:
  explicit PythonRule(nb::object function) : function_(std::move(function)) {}
  PythonRule(const PythonRule&) = delete;
  PythonRule& operator=(const PythonRule&) = delete;
  ~PythonRule() {
    // The last set that holds the rule may go on a thread without the lock, or after the interpreter.
    if (Py_IsInitialized() == 0) {
      function_.release();
      return;
    }
    const nb::gil_scoped_acquire acquire;
    function_.reset();
  }

  bool matches(const RuleContext& context) const {
    const nb::gil_scoped_acquire acquire;
    return nb::cast<bool>(ask(context));
  }
  std::optional<Graph> rewrite(const RuleContext& context) const {
    std::optional<Graph> kept;
    {
      const nb::gil_scoped_acquire acquire;
      const nb::object answer = ask(context);
      if (!answer.is_none()) kept = nb::cast<Graph>(answer);
    }
    if (kept && kept->variables() != context.graph.variables())
      kept = kept->in_table(context.graph.variables());
    return kept;
  }

 private:
  nb::object ask(const RuleContext& context) const {
    Graph rejected = context.graph;
    const Step& step = rejected.apply(context.step);
    return function_(context.graph, step_data(rejected, step));
  }

  nb::object function_;
};

void add_rule(RuleSet& rules, std::string id, std::string name, const std::string& kind,
              std::string doc, std::string version, const std::vector<std::string>& steps,
              nb::object function) {
  AddedRule rule;
  rule.id = std::move(id);
  rule.name = std::move(name);
  rule.kind = find_kind(kind);
  rule.doc = std::move(doc);
  rule.version = std::move(version);
  rule.steps = find_steps(steps);
  const auto python = std::make_shared<const PythonRule>(std::move(function));
  if (rule.kind == RuleKind::kRestriction) {
    rule.matches = [python](const RuleContext& context) { return python->matches(context); };
  } else {
    rule.rewrite = [python](const RuleContext& context) { return python->rewrite(context); };
  }
  rules.add(std::move(rule));
}

nb::dict checked(const Specification& spec, const RuleSet& on, const std::string& rule,
                 std::int64_t trials, std::int64_t max_graphs, std::uint64_t seed,
                 const nb::object& progress) {
  const auto watch = [&progress](const RuleCheck& check) {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return progress.is_none() || nb::cast<bool>(progress(check.compared, check.graphs));
  };
  const RuleSet rules = copied(on);
  RuleCheckOptions options;
  options.trials = trials;
  options.max_graphs = max_graphs;
  options.seed = seed;
  RuleCheck found;
  {
    const LongCall call;
    found = check_rule(spec, rules, rule, options, watch);
  }
  nb::dict result;
  result["graphs"] = found.graphs;
  result["asked"] = found.asked;
  result["refused"] = found.rejected;
  result["compared"] = found.compared;
  result["equal_keys"] = found.equal_keys;
  result["equal_values"] = found.equal_values;
  result["different"] = found.different;
  result["undecided"] = found.undecided;
  result["mean_share"] = found.mean_share;
  result["most_share"] = found.most_share;
  result["example"] = nb::none();
  if (found.example) {
    nb::dict example;
    example["refused"] = found.example->rejected;
    example["kept"] = found.example->kept;
    example["share"] = found.example->share;
    result["example"] = example;
  }
  return result;
}

std::vector<std::string> ids_that_are_on(const RuleSet& rules) {
  std::vector<std::string> ids;
  for (const Rule* rule : rules.rules()) ids.emplace_back(rule->id);
  return ids;
}

}  // namespace

void bind_rules(nb::module_& m) {
  m.def("rule_catalogue", &rule_catalogue, nb::sig("def rule_catalogue() -> list[dict[str, str]]"),
        "The id, name, kind (exact, approximate or restriction) and doc of every rule.");
  m.def("check_rule", &checked, "spec"_a, "rules"_a, "rule"_a, "trials"_a = 100,
        "max_graphs"_a = 2'000, "seed"_a = 0, "progress"_a = nb::none(),
        nb::sig("def check_rule(spec: Specification, rules: RuleSet, rule: str, trials: int = 100, "
                "max_graphs: int = 2000, seed: int = 0, progress: "
                "collections.abc.Callable[[int, int], bool] | None = None) -> "
                "RuleCheck"),
        "Compares what a rule rejects on random graphs with what it keeps. progress(compared, "
        "graphs) is called regularly and ends the check by returning False.");
  nb::class_<RuleSet>(m, "RuleSet", "The rules that are on. Initially, all rules are on.")
      .def(nb::init<>())
      .def("set", &RuleSet::set, "rule"_a, "on"_a,
           "Switches a rule, given by id or name, on or off. The UserError for an unknown rule "
           "lists the rules.")
      .def("add", &add_rule, "id"_a, "name"_a, "kind"_a, "doc"_a, "version"_a, "steps"_a,
           "function"_a,
           nb::sig("def add(self, id: str, name: str, kind: str, doc: str, version: str, steps: "
                   "collections.abc.Sequence[str], function: "
                   "collections.abc.Callable[[Graph, Step], bool | Graph | None]) -> None"),
           "Adds a custom rule function(graph, step). A restriction returns whether the step is "
           "left out; "
           "another rule returns the graph that is kept, or None. Several threads call the "
           "function, one "
           "at a time.")
      .def("is_on", &RuleSet::is_on, "rule"_a)
      .def_prop_ro("on", &ids_that_are_on,
                   "The ids of the rules that are on, in the order of evaluation.")
      .def_prop_ro("version", &RuleSet::version,
                   "A digest that changes if a rule is added, changed or switched.");
}

}  // namespace syno::bindings
