#include "syno/explain/equal_forms.h"

#include <algorithm>
#include <deque>
#include <set>

#include "syno/key/key.h"
#include "syno/rules/reorder.h"
#include "syno/space/step_order.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// Ways to put the rewritten graph in the place of the rejected one; more are not tried.
constexpr int kMostPlacings = 60;

// A graph of some steps of an operator, the step that comes next, and what is still to come.
struct Situation {
  Graph graph;
  Step step;
  std::size_t index = 0;
  StepOrder order;
};

// needs[s][t]: step s can only be taken after step t.
std::vector<std::vector<bool>> dependencies(const Graph& graph) {
  std::vector<std::vector<bool>> needs;
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    std::vector<bool>& needed = needs.emplace_back(graph.steps().size(), false);
    needed[s] = true;
    add_needed_steps(graph, needed);
    needed[s] = false;
  }
  return needs;
}

// Every step of `op`, with as much and with as little as possible before it.
std::vector<Situation> situations(const Operator& op) {
  const Graph& goal = op.graph();
  const auto needs = dependencies(goal);
  std::vector<Situation> found;
  for (std::size_t s = 0; s < goal.steps().size(); ++s) {
    int before = -1;
    for (const bool much : {true, false}) {
      Graph graph = goal.root();
      StepOrder order(goal);
      for (std::size_t t = 0; t < goal.steps().size(); ++t) {
        if (t == s || (much ? needs[t][s] : !needs[s][t])) continue;
        order.take(t, graph.apply(order.translated(t, graph)));
      }
      if (graph.depth() == before) continue;  // Both are the same.
      before = graph.depth();
      const Step step = order.translated(s, graph);
      found.push_back({std::move(graph), step, s, std::move(order)});
    }
  }
  return found;
}

// Takes the steps of the operator that `order` has not taken yet; nothing where one does not fit.
std::optional<Operator> completed(const Operator& op, Graph graph, StepOrder order) {
  try {
    for (std::size_t s = 0; s < op.graph().steps().size(); ++s) {
      if (order.taken()[s]) continue;
      order.take(s, graph.apply(order.translated(s, graph)));
    }
    std::vector<CoordinateId> match;
    for (const CoordinateId id : op.match()) match.push_back(order.now(id));
    return Operator(graph, op.input(), match);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// The forms that arise when `kept` stands for the situation's graph and step. Which coordinate of its frontier stands for
// which is not known, so placings with equal extents are tried, those that leave iterators alone first.
class Placing {
 public:
  Placing(const Operator& op, const Situation& situation, const Graph& kept)
      : op_(op), kept_(kept), order_(situation.order), rejected_(situation.graph) {
    order_.take(situation.index, rejected_.apply(situation.step));
    to_.assign(rejected_.coordinates().size(), kNoCoordinate);
    used_.assign(kept.frontier().size(), false);
  }

  // Calls `accept` with each form until it returns true.
  bool visit(const std::function<bool(const Operator&)>& accept, std::size_t place = 0) {
    if (rejected_.frontier().size() != kept_.frontier().size()) return false;
    if (place == rejected_.frontier().size()) {
      if (++tried_ > kMostPlacings) return true;
      StepOrder order = order_;
      order.rename(to_);
      const std::optional<Operator> form = completed(op_, kept_, std::move(order));
      return form && accept(*form);
    }
    const CoordinateId from = rejected_.frontier()[place];
    for (const bool itself : {true, false}) {
      for (std::size_t i = 0; i < kept_.frontier().size(); ++i) {
        const CoordinateId id = kept_.frontier()[i];
        const bool same = rejected_.is_iterator(from) && id == from;
        if (used_[i] || same != itself || kept_.extent(id) != rejected_.extent(from)) continue;
        used_[i] = true;
        to_[static_cast<std::size_t>(from)] = id;
        if (visit(accept, place + 1)) return true;
        used_[i] = false;
      }
    }
    return false;
  }

 private:
  const Operator& op_;
  const Graph& kept_;
  StepOrder order_;
  Graph rejected_;
  std::vector<CoordinateId> to_;
  std::vector<bool> used_;
  int tried_ = 0;
};

// What is left of `op` when step `edited` is taken with its operands exchanged (a Split) or not at all (a Shift).
std::optional<Operator> edited(const Operator& op, std::size_t index) {
  const Graph& goal = op.graph();
  Graph graph = goal.root();
  StepOrder order(goal);
  try {
    for (std::size_t s = 0; s < goal.steps().size(); ++s) {
      Step step = order.translated(s, graph);
      if (s == index && step.info().permutes()) {
        step.out[0] = step.in[0];
        order.take(s, step);
        continue;
      }
      if (s == index) std::swap(step.in[0], step.in[1]);
      order.take(s, graph.apply(step));
    }
    std::vector<CoordinateId> match;
    for (const CoordinateId id : op.match()) match.push_back(order.now(id));
    return Operator(graph, op.input(), match);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Forms that no rewrite of a rule makes: rules about complete graphs have none. Whether they are equal is for the key.
std::vector<Operator> neighbours(const Operator& op, const Specification& spec) {
  std::vector<Operator> found;
  for (std::size_t s = 0; s < op.graph().steps().size(); ++s) {
    const PrimitiveInfo& info = op.graph().steps()[s].info();
    if (!info.joins() && !info.permutes()) continue;
    if (auto form = edited(op, s)) found.push_back(std::move(*form));
  }
  for (const auto& match : matchings(op.graph(), op.input(), spec.passed_through()))
    found.emplace_back(op.graph(), op.input(), match);
  return found;
}

// The rule that rejects the complete graph, or words for what the key alone knows.
std::string refusal_of(const Operator& op, const Specification& spec, const RuleSet& rules) {
  const Rule* rule = rules.rejecting_rule(spec, op.graph(), op.input(), op.match());
  return rule == nullptr ? "equal keys" : std::string(rule->id) + " " + std::string(rule->name);
}

// The rules whose rewrites lead from one form to another.
std::vector<const Rule*> leading(const RuleSet& rules, FormsOf which) {
  std::vector<const Rule*> list;
  for (const Rule* rule : catalogue()) {
    if (rule->kind == RuleKind::kExact && rule->rewrite != nullptr) list.push_back(rule);
  }
  for (const Rule* rule : rules.added()) {
    if (rule->kind == RuleKind::kExact) list.push_back(rule);
  }
  for (const Rule* rule : rules.rules()) {
    if (which == FormsOf::kApproximateRules && rule->kind == RuleKind::kApproximate)
      list.push_back(rule);
  }
  return list;
}

}  // namespace

std::optional<EqualForm> find_equal_form(const Operator& op, const Specification& spec,
                                         const RuleSet& rules, FormsOf which,
                                         const std::function<bool(const Operator&)>& wanted,
                                         int most) {
  const Operator first = op.in_table(spec.variables());
  const std::vector<const Rule*> all = leading(rules, which);
  std::deque<EqualForm> waiting{{first, semantic_key(first, spec.bindings()), {}}};
  std::set<Hash128> known{first.structure()};
  std::optional<EqualForm> found;
  // Whether the form is equal, or near-equal by the rule; a new one waits for its turn.
  const auto consider = [&](const Operator& candidate, const EqualForm& from, std::string why,
                            bool near) {
    const Operator form = candidate.in_table(spec.variables());
    const Hash128 key = semantic_key(form, spec.bindings());
    if (!near && key != from.key) return false;
    if (!known.insert(form.structure()).second) return true;
    EqualForm next{form, key, from.rules, from.near || near};
    next.rules.push_back(std::move(why));
    if (wanted(form)) found = next;
    waiting.push_back(std::move(next));
    return true;
  };
  while (!waiting.empty() && static_cast<int>(known.size()) <= most) {
    const EqualForm from = std::move(waiting.front());
    waiting.pop_front();
    for (const Situation& situation : situations(from.op)) {
      const RuleContext context{spec, situation.graph, situation.step};
      for (const Rule* rule : all) {
        if (!rule->steps.holds(situation.step.primitive) || !rule->matches(context)) continue;
        std::optional<Graph> kept;
        try {
          kept = kept_form(*rule, context);
        } catch (const UserError&) {
          continue;  // Without the guard, a rewrite may take a step that makes no sense.
        }
        if (!kept) continue;
        // No key tells the right placing of a near-equal form: it is the first, because rewrites of approximate rules
        // leave the order of coordinates as it is.
        const bool near = rule->kind == RuleKind::kApproximate;
        Placing placing(from.op, situation, *kept);
        placing.visit([&](const Operator& candidate) {
          return consider(candidate, from, std::string(rule->id) + " " + std::string(rule->name),
                          near);
        });
        if (found) return found;
      }
    }
    for (const Operator& candidate : neighbours(from.op, spec)) {
      consider(candidate, from, refusal_of(from.op, spec, RuleSet()), false);
      if (found) return found;
    }
  }
  return std::nullopt;
}

std::vector<const Rule*> rules_that_reject(const Operator& op, const Specification& spec,
                                           const RuleSet& rules) {
  const Operator local = op.in_table(spec.variables());
  std::vector<const Rule*> restrictions;
  for (const Rule* rule : rules.rules()) {
    if (rule->kind == RuleKind::kRestriction) restrictions.push_back(rule);
  }
  std::vector<const Rule*> found;
  const std::vector<Situation> all = situations(local);
  for (const Rule* rule : rules.rules()) {
    const bool match = rule->rejects_match != nullptr &&
                       rule->rejects_match(spec, local.graph(), local.input(), local.match());
    if (match || std::any_of(all.begin(), all.end(), [&](const Situation& situation) {
          return rejects(*rule, {spec, situation.graph, situation.step}, restrictions);
        }))
      found.push_back(rule);
  }
  return found;
}

}  // namespace syno
