#include "syno/rules/rule.h"

#include <algorithm>
#include <vector>

#include "syno/rules/rebuild.h"
#include "syno/support/error.h"
#include "syno/support/inline_vector.h"

namespace syno {
namespace {

// Whether a step after the rejected graph can charge variable v. Reductions come before everything else.
bool can_be_charged(const Specification& spec, const Ledger& rejected, std::size_t v) {
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    const PrimitiveInfo& info = primitive_info(static_cast<Primitive>(p));
    if (info.charge == Charge::kNothing || info.kind == StepKind::kReduction) continue;
    if (info.charge == Charge::kWeightDims && !spec.variable(v).primary) continue;
    if (rejected.counts[p] < spec.cap(info.primitive)) return true;
  }
  return false;
}

// Whether what may follow the rejected graph may follow the kept one as well, as far as budgets and caps go. Reductions
// have a cap of their own: one more of them is fine as long as the cap is not reached, because none can follow.
bool no_more(const Specification& spec, const Ledger& kept, const Ledger& rejected) {
  if (kept.depth > rejected.depth || (rejected.fit & ~kept.fit) != 0) return false;
  // Nothing follows.
  if (rejected.depth == spec.limits().max_depth) return true;
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    const bool reduces = primitive_info(static_cast<Primitive>(p)).kind == StepKind::kReduction;
    if (!reduces && kept.counts[p] > rejected.counts[p]) return false;
  }
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    if (kept.charges[v] > rejected.charges[v] && can_be_charged(spec, rejected, v)) return false;
  }
  return true;
}

// A coordinate that a step would produce, and its chain of views.
struct Chain {
  Size extent;
  int length = 0;
};

// The frontier of graph and step, as far as chains go.
InlineVector<Chain, 16> chains_after(const RuleContext& context) {
  InlineVector<Chain, 16> chains;
  const PrimitiveInfo& info = primitive_info(context.step.primitive);
  const auto leaves = [&](CoordinateId id) {
    for (int j = 0; j < info.consumes; ++j) {
      if (context.step.in[static_cast<std::size_t>(j)] == id) return true;
    }
    return takes_out(context.step, id);
  };
  for (const CoordinateId id : context.graph.frontier()) {
    if (!leaves(id))
      chains.push_back({context.graph.extent(id), context.graph.coordinate(id).chain});
  }
  int longest = 0;
  for (int j = 0; j < info.consumes; ++j) {
    const Coordinate& from = context.graph.coordinate(context.step.in[static_cast<std::size_t>(j)]);
    longest = std::max<int>(longest, from.chain + 1);
  }
  const std::array<Size, 2> out = context.graph.extents_made(context.step);
  for (int i = 0; i < info.produces; ++i)
    chains.push_back({out[static_cast<std::size_t>(i)], longest});
  return chains;
}

// Whether a coordinate of one graph is computed as one of the other, down to iterators and reductions.
bool same_expression(const Graph& a, CoordinateId in_a, const Graph& b, CoordinateId in_b) {
  const Coordinate& one = a.coordinate(in_a);
  const Coordinate& other = b.coordinate(in_b);
  if (one.chain != other.chain || one.index != other.index || one.extent != other.extent)
    return false;
  const Step* step = a.producer(in_a);
  const Step* of = b.producer(in_b);
  if (step == nullptr || of == nullptr) return step == of;
  if (step->primitive != of->primitive || step->amount != of->amount || step->causal != of->causal)
    return false;
  for (std::size_t j = 0; j < step->in.size(); ++j) {
    if ((step->in[j] == kNoCoordinate) != (of->in[j] == kNoCoordinate)) return false;
    if (step->in[j] != kNoCoordinate && !same_expression(a, step->in[j], b, of->in[j]))
      return false;
  }
  return true;
}

// Chains of views on the frontier of `graph`, without those that end in a coordinate of `other`'s frontier.
InlineVector<Chain, 16> chains_of_its_own(const Graph& graph, const Graph& other) {
  InlineVector<Chain, 16> chains;
  Graph::Frontier left = other.frontier();
  for (const CoordinateId id : graph.frontier()) {
    const auto* same = std::find_if(left.begin(), left.end(), [&](CoordinateId candidate) {
      return same_expression(graph, id, other, candidate);
    });
    if (same == left.end()) {
      chains.push_back({graph.extent(id), graph.coordinate(id).chain});
    } else {
      left.erase(same);
    }
  }
  return chains;
}

// Whether every chain of views that the rejected graph can still grow can be grown on `kept` as well. Which coordinate of
// one stands for which of the other is not known, apart from their extents: the shortest is compared with the longest.
bool no_longer(const RuleContext& context, const Graph& kept) {
  const Limits& limits = context.spec.limits();
  const auto left = static_cast<int>(limits.max_depth) - context.graph.depth() - 1;
  const auto too_long = [&](const Chain& chain, const InlineVector<Chain, 16>& before) {
    return chain.length + left > limits.max_chain_length &&
           std::any_of(before.begin(), before.end(), [&](const Chain& other) {
             return other.length < chain.length && other.extent == chain.extent;
           });
  };
  // What both frontiers hold does not count, but mostly nothing is too long even with it.
  const InlineVector<Chain, 16> all = chains_after(context);
  bool suspect = false;
  for (const CoordinateId id : kept.frontier())
    suspect = suspect || too_long({kept.extent(id), kept.coordinate(id).chain}, all);
  if (!suspect) return true;
  Graph rejected = context.graph;
  rejected.apply(context.step);
  const InlineVector<Chain, 16> before = chains_of_its_own(rejected, kept);
  const InlineVector<Chain, 16> after = chains_of_its_own(kept, rejected);
  return std::none_of(after.begin(), after.end(),
                      [&](const Chain& chain) { return too_long(chain, before); });
}

// What graph and step have used, or nothing when the specification rejects one of them.
const Ledger* ledger_after(const RuleContext& context, Ledger& space) {
  if (context.after != nullptr) return context.after;
  if (context.before != nullptr) {
    space = *context.before;
  } else {
    space = start_ledger(context.spec);
    // What is asked of a graph is asked of its coordinates, which later steps do not change.
    for (const Step& step : context.graph.steps()) {
      if (!admit(context.spec, context.graph, step, space).empty()) return nullptr;
    }
  }
  return admit(context.spec, context.graph, context.step, space).empty() ? &space : nullptr;
}

}  // namespace

std::string_view rule_kind_name(RuleKind kind) {
  switch (kind) {
    case RuleKind::kExact: return "exact";
    case RuleKind::kApproximate: return "approximate";
    case RuleKind::kRestriction: return "restriction";
  }
  throw InternalError("rule_kind_name: not a kind");
}

Guard::Guard(const Specification& spec, const RestrictionTable& restrictions)
    : spec_(spec), restrictions_(restrictions), ledger_(start_ledger(spec)) {}

bool Guard::take(const Graph& graph, const Step& step) {
  if (rejected_) return false;
  ++taken_;
  rejected_ = !admit(spec_, graph, step, ledger_).empty();
  for (const Rule* restriction : restrictions_[static_cast<std::size_t>(step.primitive)]) {
    if (rejected_) break;
    rejected_ = restriction->matches({spec_, graph, step});
  }
  return !rejected_;
}

const Ledger* Guard::ledger(const Graph& graph) {
  if (!rejected_ && taken_ != graph.depth()) {
    // The rewrite has not had all of its steps checked.
    ledger_ = start_ledger(spec_);
    Graph prefix = graph.root();
    for (const Step& step : graph.steps()) {
      if (!take(prefix, step)) break;
      prefix.apply(step);
    }
  }
  return rejected_ ? nullptr : &ledger_;
}

std::optional<Graph> kept_form(const Rule& rule, const RuleContext& context) {
  try {
    return rule.rewrite(context);
  } catch (const NoSuchForm&) {
    return std::nullopt;
  }
}

bool rejects(const Rule& rule, const RuleContext& context, const RestrictionTable& restrictions) {
  if (!rule.steps.holds(context.step.primitive) || !rule.matches(context)) return false;
  if (rule.kind == RuleKind::kRestriction) return true;
  // A step that the specification rejects anyway needs no rule.
  Ledger space;
  const Ledger* rejected = ledger_after(context, space);
  if (rejected == nullptr) return false;
  if (rule.drops_steps) return true;
  Guard guard(context.spec, restrictions);
  RuleContext guarded = context;
  guarded.guard = &guard;
  const std::optional<Graph> kept = kept_form(rule, guarded);
  if (!kept) return false;
  const Ledger* ledger = guard.ledger(*kept);
  return ledger != nullptr && no_more(context.spec, *ledger, *rejected) &&
         no_longer(context, *kept);
}

bool rejects(const Rule& rule, const RuleContext& context,
             std::span<const Rule* const> restrictions) {
  std::array<std::vector<const Rule*>, kPrimitiveCount> lists;
  RestrictionTable table;
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    for (const Rule* restriction : restrictions) {
      if (restriction->steps.holds(static_cast<Primitive>(p))) lists[p].push_back(restriction);
    }
    table[p] = lists[p];
  }
  return rejects(rule, context, table);
}

}  // namespace syno
