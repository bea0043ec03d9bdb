#include "syno/space/accept.h"

#include "syno/plan/plan.h"
#include "syno/quality/quality.h"
#include "syno/rules/docs.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

// The bindings under which every extent of the operator is a positive integer.
FitMask fit_of(const Operator& op, const Specification& spec) {
  FitMask fit = spec.full_fit();
  for (const Coordinate& coordinate : op.graph().coordinates()) fit &= spec.fit(coordinate.extent);
  return fit;
}

// `cost` under each binding that the operator fits, by multiplicity. Elsewhere the network keeps its layer.
template <class Cost>
std::int64_t total(const Operator& op, const Specification& spec, Cost cost, const char* what) {
  const Operator local = op.in_table(spec.variables());
  const FitMask fit = fit_of(local, spec);
  std::int64_t sum = 0;
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    if (!(fit >> b & 1)) continue;
    sum = checked_add(
        sum, checked_multiply(cost(local, spec.bindings()[b]), spec.multiplicities()[b], what),
        what);
  }
  return sum;
}

void check_window(std::vector<RejectionReason>& found, const char* name, std::int64_t value,
                  std::int64_t low, std::int64_t high) {
  const std::string least = "min_" + std::string(name);
  const std::string most = "max_" + std::string(name);
  if (low > 0 && value < low)
    found.push_back({least, std::string(name) + " are " + with_thousands(value) + ", below " +
                                least + "=" + with_thousands(low)});
  if (high > 0 && value > high)
    found.push_back({most, std::string(name) + " are " + with_thousands(value) + ", above " + most +
                               "=" + with_thousands(high)});
}

bool same_sizes(const Shape& a, const Variables& in_a, const Shape& b, const Variables& in_b) {
  return shape_text(a, in_a) == shape_text(b, in_b);
}

// The first step that the specification or a restriction rejects.
void check_steps(std::vector<RejectionReason>& found, const Graph& graph, const Specification& spec,
                 const RuleSet& rules) {
  Ledger ledger = start_ledger(spec);
  Graph prefix(graph.variables(), graph.output());
  for (const Step& step : graph.steps()) {
    const std::string where = "step " + std::to_string(prefix.steps().size() + 1) + " of " +
                              std::to_string(graph.steps().size());
    if (const Reason why = admit(spec, prefix, step, ledger); !why.empty()) {
      found.push_back(
          {std::string(why), describe_rejection(spec, prefix, step, why) + " (" + where + ")"});
      return;
    }
    const RuleContext context{spec, prefix, step};
    for (const Rule* rule : rules.rules()) {
      if (rule->kind != RuleKind::kRestriction || !rejects(*rule, context)) continue;
      found.push_back({std::string(rule->id) + " " + std::string(rule->name),
                       rule_summary(*rule) + " (" + where + ")"});
    }
    prefix.apply(step);
  }
}

}  // namespace

std::int64_t total_macs(const Operator& op, const Specification& spec) {
  return total(op, spec, macs, "MACs");
}
std::int64_t total_params(const Operator& op, const Specification& spec) {
  return total(op, spec, params, "parameters");
}

std::vector<RejectionReason> quality_and_cost_rejections(const Operator& op,
                                                         const Specification& spec) {
  std::vector<RejectionReason> found;
  for (const Rejection& rejection : quality_rejections(op, spec))
    found.push_back({std::string(rejection.reason), rejection.text});
  for (RejectionReason& rejection : cost_rejections(op, spec))
    found.push_back(std::move(rejection));
  return found;
}

std::vector<RejectionReason> cost_rejections(const Operator& op, const Specification& spec) {
  std::vector<RejectionReason> found;
  const Limits& limits = spec.limits();
  if (limits.min_macs > 0 || limits.max_macs > 0)
    check_window(found, "macs", total_macs(op, spec), limits.min_macs, limits.max_macs);
  if (limits.min_params > 0 || limits.max_params > 0) {
    check_window(found, "params", total_params(op, spec), limits.min_params, limits.max_params);
  }
  return found;
}

std::vector<RejectionReason> rejections(const Operator& op, const Specification& spec,
                                        const RuleSet& rules) {
  for (const std::string& name : op.variables()->names()) {
    if (!spec.variables()->find(name)) {
      return {{"unknown_variable", "the operator uses variable '" + name +
                                       "', the specification has " +
                                       join(spec.variables()->names(), ", ")}};
    }
  }
  const Variables& own = *op.variables();
  const Variables& all = *spec.variables();
  if (!same_sizes(op.input(), own, spec.input(), all) ||
      !same_sizes(op.output(), own, spec.output(), all)) {
    return {{"shape", "the operator maps " + shape_text(op.input(), own) + " to " +
                          shape_text(op.output(), own) + ", the specification asks for " +
                          spec.text()}};
  }
  const Operator local = op.in_table(spec.variables());
  for (const auto& [out, in] : spec.passed_through()) {
    if (local.match()[static_cast<std::size_t>(in)] != static_cast<CoordinateId>(out)) {
      return {{std::string(reason::kPassedThrough), "input dimension " + std::to_string(in) +
                                                        " is not output dimension " +
                                                        std::to_string(out)}};
    }
  }
  std::vector<RejectionReason> found;
  check_steps(found, local.graph(), spec, rules);
  for (const Rule* rule : rules.rules()) {
    if (rule->kind == RuleKind::kRestriction && rule->rejects_match != nullptr &&
        rule->rejects_match(spec, local.graph(), local.input(), local.match()))
      found.push_back({std::string(rule->id) + " " + std::string(rule->name), rule_summary(*rule)});
  }
  if (!spec.fit_suffices(fit_of(local, spec))) return found;
  for (RejectionReason& rejection : quality_and_cost_rejections(local, spec))
    found.push_back(std::move(rejection));
  return found;
}

}  // namespace syno
