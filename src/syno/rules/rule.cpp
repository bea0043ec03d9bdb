#include "syno/rules/rule.h"

#include "syno/support/error.h"

namespace syno {
namespace {

// Replays the graph, or nothing when the specification or a restriction refuses a step of it.
std::optional<Ledger> try_replay(const Specification& spec, const Graph& graph,
                                 std::span<const Rule* const> restrictions) {
  Ledger ledger = start_ledger(spec);
  Graph prefix(graph.variables(), graph.output());
  for (const Step& step : graph.steps()) {
    if (!admit(spec, prefix, step, ledger).empty()) return std::nullopt;
    for (const Rule* restriction : restrictions) {
      if (restriction->matches({spec, prefix, step})) return std::nullopt;
    }
    prefix.apply(step);
  }
  return ledger;
}

// Reductions have a cap of their own: one more of them is fine as long as the cap is not reached, because reductions
// come before everything else and none can follow.
bool no_more(const Specification& spec, const Ledger& kept, const Ledger& refused) {
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    if (kept.charges[v] > refused.charges[v]) return false;
  }
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    if (static_cast<Primitive>(p) != Primitive::kReduce && kept.counts[p] > refused.counts[p])
      return false;
  }
  return kept.depth <= refused.depth && (refused.fit & ~kept.fit) == 0;
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

bool refuses(const Rule& rule, const RuleContext& context,
             std::span<const Rule* const> restrictions) {
  if (!rule.matches(context)) return false;
  if (rule.kind == RuleKind::kRestriction) return true;
  const std::optional<Graph> kept = rule.rewrite(context);
  if (!kept) return false;
  Graph refused = context.graph;
  refused.apply(context.step);
  const std::optional<Ledger> refused_ledger = try_replay(context.spec, refused, {});
  // A step that the specification refuses anyway needs no rule.
  if (!refused_ledger) return false;
  const std::optional<Ledger> kept_ledger = try_replay(context.spec, *kept, restrictions);
  return kept_ledger && no_more(context.spec, *kept_ledger, *refused_ledger);
}

}  // namespace syno
