// A canonicalisation rule is data: it looks at one step on top of a graph and says whether the step is refused because
// an equal operator stays reachable (exact), a near-equal one does (approximate), or the specification leaves it out on
// purpose (restriction). Rules are functions of the graph, never of the path to it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "syno/graph/graph.h"
#include "syno/spec/ledger.h"

namespace syno {

enum class RuleKind : std::uint8_t { kExact, kApproximate, kRestriction };
std::string_view rule_kind_name(RuleKind kind);

/// What a rule looks at: the graph before the step, the step, and what has been used so far.
struct RuleContext {
  const Specification& spec;
  const Graph& graph;
  const Step& step;
};

struct Rule {
  /// Stable, short: "R1".
  std::string_view id;
  /// A few words: "merge-above-split".
  std::string_view name;
  RuleKind kind;
  /// Headings What, Why, When, Soundness, Status, Example.
  std::string_view doc;
  /// For restrictions: whether the step is left out. For others: whether the pattern matches at all.
  bool (*matches)(const RuleContext& context);
  /// For exact and approximate rules: the graph that stands for `graph` plus `step`; it is complete where that one is.
  /// Nothing when the pattern does not match. Null for restrictions.
  std::optional<Graph> (*rewrite)(const RuleContext& context);
};

/// Whether `rule` refuses the step. Exact and approximate rules fire only under the general guard: what they keep
/// instead is legal in the specification under every binding the refused graph fits, passes `restrictions`, takes no
/// more steps, budget or capped resources, and lets chains of views grow as far.
bool refuses(const Rule& rule, const RuleContext& context,
             std::span<const Rule* const> restrictions = {});

}  // namespace syno
