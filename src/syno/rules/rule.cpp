#include "syno/rules/rule.h"

#include <algorithm>
#include <map>
#include <vector>

#include "syno/support/error.h"
#include "syno/support/hash.h"

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

// A hash of how a coordinate is computed, down to iterators and reductions.
Hash128 expression(const Graph& graph, CoordinateId id) {
  Hasher hasher("expression");
  const Coordinate& coordinate = graph.coordinate(id);
  hasher.add(coordinate.index).add(coordinate.extent.hash(*graph.variables()));
  if (const Step* step = graph.producer(id)) {
    hasher.add(primitive_info(step->primitive).name).add(step->amount).add(step->causal ? 1 : 0);
    for (const CoordinateId in : step->in) {
      if (in != kNoCoordinate) hasher.add(expression(graph, in));
    }
  }
  return hasher.finish();
}

struct Chain {
  Size extent;
  int length = 0;
};

// Chains of views on the frontier of `graph`, without those that end in a coordinate of `other`'s frontier.
std::vector<Chain> chains_of_its_own(const Graph& graph, const Graph& other) {
  std::map<Hash128, int> common;
  for (const CoordinateId id : other.frontier()) ++common[expression(other, id)];
  std::vector<Chain> chains;
  for (const CoordinateId id : graph.frontier()) {
    if (common[expression(graph, id)]-- <= 0)
      chains.push_back({graph.extent(id), chain_length(graph, id)});
  }
  return chains;
}

// Whether every chain of views that `refused` can still grow can be grown on `kept` as well. Which coordinate of one
// stands for which of the other is not known, apart from their extents: the shortest is compared with the longest.
bool no_longer(const Specification& spec, const Graph& kept, const Graph& refused) {
  const auto left = static_cast<int>(spec.limits().max_depth) - refused.depth();
  const std::vector<Chain> before = chains_of_its_own(refused, kept);
  for (const Chain& chain : chains_of_its_own(kept, refused)) {
    if (chain.length + left <= spec.limits().max_chain_length) continue;
    for (const Chain& other : before) {
      if (other.extent == chain.extent && other.length < chain.length) return false;
    }
  }
  return true;
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
  return kept_ledger && no_more(context.spec, *kept_ledger, *refused_ledger) &&
         no_longer(context.spec, *kept, refused);
}

}  // namespace syno
