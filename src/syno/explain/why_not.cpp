#include "syno/explain/why_not.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "syno/explain/equal_forms.h"
#include "syno/key/key.h"
#include "syno/spec/limits.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A value that a limit may have: whole where it is whole, otherwise three digits behind the point, on the side that
// admits what is used.
std::string limit_text(std::string_view name, double value) {
  const Option<Limits>& option = limit_option(name);
  if (option.type() == "flag") return value > 0 ? "yes" : "no";
  if (option.type() == "integer") return std::to_string(static_cast<std::int64_t>(value));
  const double scaled = value * 1000;
  const double rounded =
      name.starts_with("min_") ? std::floor(scaled + 1e-6) : std::ceil(scaled - 1e-6);
  return digits_text(rounded / 1000);
}

double limit_value(std::string_view name, const std::string& text) {
  if (limit_option(name).type() == "flag") return text == "yes" ? 1 : 0;
  return std::stod(text);
}

// Changes without which no other change helps: budgets and limits that the operator exceeds.
std::vector<Relaxation> necessary(const Usage& usage) {
  std::vector<Relaxation> changes;
  for (const BudgetUse& use : usage.budgets) {
    if (!use.within())
      changes.push_back({Relaxation::Kind::kBudget, use.variable, std::to_string(use.budget),
                         std::to_string(use.used)});
  }
  for (const LimitUse& use : usage.limits) {
    if (!use.within)
      changes.push_back({Relaxation::Kind::kLimit, use.limit, limit_text(use.limit, use.allowed),
                         limit_text(use.limit, use.used)});
  }
  return changes;
}

Relaxation rule_off(const Rule& rule) {
  return {Relaxation::Kind::kRule, std::string(rule.id), "on", "off"};
}

// What still speaks against the operator; empty when a search lists it.
std::string objection(const Operator& op, const Specification& spec, const RuleSet& rules) {
  const std::vector<RejectionReason> against = rejections(op, spec, rules);
  if (!against.empty()) return against.front().text;
  const Operator local = op.in_table(spec.variables());
  if (const Rule* rule = rules.rejecting_rule(spec, local.graph(), local.input(), local.match()))
    return std::string(rule->id) + " " + std::string(rule->name);
  ChildGenerator generator(spec, rules);
  const Path path = find_path(generator, local, spec.limits().max_depth);
  return path.reached ? "" : path.obstacle;
}

class Relaxer {
 public:
  Relaxer(const Operator& op, const Specification& spec, const RuleSet& rules, double max_seconds)
      : op_(op), spec_(spec), rules_(rules), max_seconds_(max_seconds), start_(Clock::now()) {}

  // The smallest working set: what is necessary, with no rule, one rule or two rules off.
  std::vector<Relaxation> find(const Usage& usage) {
    const std::vector<Relaxation> needed = necessary(usage);
    if (works(needed)) return spared(needed);
    const std::vector<const Rule*> candidates =
        rules_that_reject(op_, relaxed(spec_, needed), rules_);
    for (const Rule* rule : candidates) {
      if (auto changes = with(needed, {rule}); works(changes)) return spared(std::move(changes));
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      for (std::size_t j = i + 1; j < candidates.size(); ++j) {
        if (auto changes = with(needed, {candidates[i], candidates[j]}); works(changes))
          return spared(std::move(changes));
      }
    }
    if (auto changes = with(needed, candidates); works(changes)) return spared(std::move(changes));
    return {};
  }

  // What speaks against the operator under the necessary changes, whatever rules are on.
  std::string left(const Usage& usage) const {
    try {
      const Specification spec = relaxed(spec_, necessary(usage));
      const std::string always = objection(op_, spec, RuleSet::none());
      return always.empty() ? objection(op_, spec, rules_) : always;
    } catch (const UserError& error) {
      return error.what();
    }
  }

 private:
  static std::vector<Relaxation> with(std::vector<Relaxation> changes,
                                      const std::vector<const Rule*>& rules) {
    for (const Rule* rule : rules) changes.push_back(rule_off(*rule));
    return changes;
  }

  bool works(const std::vector<Relaxation>& changes) const {
    if (seconds_since(start_) > max_seconds_) return false;
    try {
      return objection(op_, relaxed(spec_, changes), relaxed(rules_, changes)).empty();
    } catch (const UserError&) {
      return false;  // No specification has such a limit.
    }
  }

  // Takes away what is not needed beside the others, the last first.
  std::vector<Relaxation> spared(std::vector<Relaxation> changes) const {
    for (std::size_t i = changes.size(); i-- > 0 && changes.size() > 1;) {
      std::vector<Relaxation> fewer = changes;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (works(fewer)) changes = std::move(fewer);
    }
    return changes;
  }

  const Operator& op_;
  const Specification& spec_;
  const RuleSet& rules_;
  double max_seconds_;
  Clock::time_point start_;
};

// The operator with this key in an enumeration of limited size.
std::optional<KeptOperator> enumerated_with_key(const Hash128& key, int depth,
                                                const Specification& spec, const RuleSet& rules,
                                                const WhyNotOptions& options) {
  if (options.max_nodes <= 0) return std::nullopt;
  EnumerateOptions enumeration;
  enumeration.max_depth = std::min<std::int64_t>(depth, spec.limits().max_depth);
  if (enumeration.max_depth < 1) return std::nullopt;
  enumeration.max_nodes = options.max_nodes;
  enumeration.max_seconds = options.max_seconds;
  enumeration.threads = 0;
  enumeration.rules = rules;
  const Space space = enumerate_space(spec, enumeration);
  for (std::size_t i = 0; i < space.operators.size(); ++i) {
    if (space.operators[i].key == key) return KeptOperator{space.op(spec, i), key, {}, false};
  }
  return std::nullopt;
}

std::optional<KeptOperator> kept_form(const Operator& op, const Hash128& key,
                                      const Specification& spec, const RuleSet& rules,
                                      const WhyNotOptions& options) {
  ChildGenerator generator(spec, rules);
  const auto start = Clock::now();
  const auto is_enumerated = [&](const Operator& form) {
    if (seconds_since(start) > options.max_seconds || !rejections(form, spec, rules).empty())
      return false;
    if (rules.rejecting_rule(spec, form.graph(), form.input(), form.match()) != nullptr)
      return false;
    return find_path(generator, form, spec.limits().max_depth).reached;
  };
  const auto formed = [&](FormsOf which) -> std::optional<KeptOperator> {
    std::optional<EqualForm> form = find_equal_form(op, spec, rules, which, is_enumerated);
    if (!form) return std::nullopt;
    return KeptOperator{std::move(form->op), form->key, std::move(form->rules), form->near};
  };
  if (auto kept = formed(FormsOf::kExactRules)) return kept;
  if (auto kept = enumerated_with_key(key, op.graph().depth(), spec, rules, options)) return kept;
  return formed(FormsOf::kApproximateRules);
}

}  // namespace

Specification relaxed(const Specification& spec, const std::vector<Relaxation>& changes) {
  SpecificationSource source = spec.source();
  for (const Relaxation& change : changes) {
    if (change.kind == Relaxation::Kind::kLimit) {
      set_limit(source.limits, change.name, limit_value(change.name, change.to));
    } else if (change.kind == Relaxation::Kind::kBudget) {
      for (const bool primary : {true, false}) {
        for (std::string& text : primary ? source.primary : source.coefficient) {
          VariableInfo info = parse_variable(text, primary);
          if (info.name != change.name) continue;
          info.budget = std::stoi(change.to);
          text = variable_text(info);
        }
      }
    }
  }
  return Specification(std::move(source));
}

RuleSet relaxed(const RuleSet& rules, const std::vector<Relaxation>& changes) {
  RuleSet result = rules;
  for (const Relaxation& change : changes) {
    if (change.kind == Relaxation::Kind::kRule) result.set(change.name, false);
  }
  return result;
}

WhyNot why_not(const Operator& op, const Specification& spec, const RuleSet& rules,
               const WhyNotOptions& options) {
  WhyNot result;
  result.explanation = explain(op, spec, rules);
  const Explanation& found = result.explanation;
  const Operator local = op.in_table(spec.variables());
  if (found.enumerated()) {
    // An equal structure may stand for it.
    result.kept = enumerated_with_key(found.key, local.graph().depth(), spec, rules, options);
    if (result.kept && result.kept->op.structure() == local.structure()) result.kept.reset();
    result.admitted = true;
    return result;
  }
  result.kept = kept_form(local, found.key, spec, rules, options);
  result.admitted = result.kept.has_value() && !result.kept->near;
  Relaxer relaxer(local, spec, rules, options.max_seconds);
  result.relaxations = relaxer.find(found.usage);
  if (result.relaxations.empty()) result.no_relaxation = relaxer.left(found.usage);
  return result;
}

}  // namespace syno
