// A canonicalisation rule is data: it looks at one step on top of a graph and says whether the step is refused because
// an equal operator stays reachable (exact), a near-equal one does (approximate), or the specification leaves it out on
// purpose (restriction). Rules are functions of the graph, never of the path to it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "syno/graph/graph.h"
#include "syno/spec/ledger.h"

namespace syno {

enum class RuleKind : std::uint8_t { kExact, kApproximate, kRestriction };
std::string_view rule_kind_name(RuleKind kind);

/// A set of primitives.
class PrimitiveSet {
 public:
  constexpr PrimitiveSet(std::initializer_list<Primitive> primitives) {
    for (const Primitive primitive : primitives) bits_ |= bit(primitive);
  }
  static constexpr PrimitiveSet all() {
    PrimitiveSet set({});
    set.bits_ = (1U << kPrimitiveCount) - 1;
    return set;
  }
  constexpr void add(Primitive primitive) { bits_ |= bit(primitive); }
  constexpr bool holds(Primitive primitive) const { return (bits_ & bit(primitive)) != 0; }

 private:
  static constexpr unsigned bit(Primitive primitive) {
    return 1U << static_cast<unsigned>(primitive);
  }
  unsigned bits_ = 0;
};

/// What every graph of a search keeps to while a rule is on, and what the search counts on: it does not offer steps that
/// would break it, and its completion bound leaves them out. A search asks a set of rules what it guarantees
/// (RuleSet::guarantees) and knows no rule by its id.
enum class Guarantee : std::uint8_t {
  /// What leaves the data in a contraction is an output iterator, a result of a Merge, or a Reduce; what is made of
  /// reductions alone leaves only where an earlier weight holds it.
  kPlainDrops,
  /// A window that is made of reductions alone is held by a weight, or something that it is made of is.
  kHeldWindows,
  /// A Merge cuts nothing that is made of reductions alone.
  kWholeReductions,
  /// A Split joins no two Reduces that no weight holds.
  kSeparateReductions,
  /// The block of a Merge holds no primary variable.
  kSmallBlocks,
  /// A Merge makes no size with a variable of budget 0, unless a dimension of the specification has that size.
  kFixedSizes,
};
inline constexpr std::size_t kGuaranteeCount = 6;

/// A set of guarantees.
class GuaranteeSet {
 public:
  constexpr GuaranteeSet() = default;
  constexpr GuaranteeSet(std::initializer_list<Guarantee> guarantees) {
    for (const Guarantee guarantee : guarantees) bits_ |= bit(guarantee);
  }
  constexpr void add(GuaranteeSet other) { bits_ |= other.bits_; }
  constexpr bool holds(Guarantee guarantee) const { return (bits_ & bit(guarantee)) != 0; }
  friend constexpr bool operator==(GuaranteeSet, GuaranteeSet) = default;

 private:
  static constexpr unsigned bit(Guarantee guarantee) {
    return 1U << static_cast<unsigned>(guarantee);
  }
  unsigned bits_ = 0;
};

class Guard;

/// What a rule looks at: the graph before the step, and the step.
struct RuleContext {
  const Specification& spec;
  const Graph& graph;
  const Step& step;
  /// What `graph` has used, where it is known; otherwise it is computed when a rule needs it.
  const Ledger* before = nullptr;
  /// What `graph` and `step` have used together, where that is known; the specification then admits the step.
  const Ledger* after = nullptr;
  /// Where a rewrite has its steps checked while it takes them (rebuild.h), or nothing.
  Guard* guard = nullptr;
};

/// A plain function in a built-in rule; an object with state in a rule that a user adds.
template <class Result>
class RuleFunction {
 public:
  using Plain = Result (*)(const RuleContext&);
  using Stateful = std::function<Result(const RuleContext&)>;

  constexpr RuleFunction(std::nullptr_t = nullptr) {}     // NOLINT(google-explicit-constructor)
  constexpr RuleFunction(Plain plain) : plain_(plain) {}  // NOLINT(google-explicit-constructor)
  /// Keeps a pointer: the function outlives the rule.
  explicit RuleFunction(const Stateful* stateful) : stateful_(stateful) {}

  Result operator()(const RuleContext& context) const {
    return plain_ != nullptr ? plain_(context) : (*stateful_)(context);
  }
  friend bool operator==(const RuleFunction& function, std::nullptr_t) {
    return function.plain_ == nullptr && function.stateful_ == nullptr;
  }

 private:
  Plain plain_ = nullptr;
  const Stateful* stateful_ = nullptr;
};

struct Rule {
  /// Stable, short: "R1".
  std::string_view id;
  /// A few words: "merge-above-split".
  std::string_view name;
  RuleKind kind;
  /// Headings What, Why, When, Soundness, Status, Example.
  std::string_view doc;
  /// The steps that the rule may refuse; it is not asked about others.
  PrimitiveSet steps = PrimitiveSet::all();
  /// For restrictions: whether the step is left out. For others: whether the pattern matches at all.
  RuleFunction<bool> matches;
  /// For exact and approximate rules: the graph that stands for `graph` plus `step`; it is complete where that one is.
  /// Nothing when the pattern does not match. Null for restrictions.
  RuleFunction<std::optional<Graph>> rewrite;
  /// Wherever the rule matches, what is kept is the refused graph with steps taken away and nothing else changed. Then
  /// the guard holds by itself, and nothing is rewritten to know it (a test proves the flag right).
  bool drops_steps = false;
  /// What holds of every graph of a search while the rule is on. A rule that a user adds guarantees nothing.
  GuaranteeSet guarantees = {};
  /// For rules about complete graphs: whether this matching of the frontier to the input is refused, because another
  /// complete graph is the same operator. Null for rules about steps.
  bool (*refuses_match)(const Specification& spec, const Graph& graph, const Shape& input,
                        std::span<const CoordinateId> match) = nullptr;
  /// For approximate rules: at most this share of the outputs differs where sizes have these values.
  double (*share)(const RuleContext& context, const Values& values) = nullptr;
  /// Of a rule from outside the catalogue: what its user calls this version of it. Its doc needs no headings.
  std::string_view version = "";
};

/// Whether `rule` refuses the step. Exact and approximate rules fire only under the general guard: what they keep
/// instead is legal in the specification under every binding the refused graph fits, passes `restrictions`, takes no
/// more steps, budget or capped resources than would be missed later, and lets chains of views grow as far. The graph itself must pass
/// `restrictions`.
bool refuses(const Rule& rule, const RuleContext& context,
             std::span<const Rule* const> restrictions = {});

/// The restrictions to ask about each primitive.
using RestrictionTable = std::array<std::span<const Rule* const>, kPrimitiveCount>;
bool refuses(const Rule& rule, const RuleContext& context, const RestrictionTable& restrictions);

/// The general guard while a rewrite takes its steps: each must be admitted and pass the restrictions.
class Guard {
 public:
  Guard(const Specification& spec, const RestrictionTable& restrictions);

  /// Notes the step on top of `graph`; false when it may not be taken.
  bool take(const Graph& graph, const Step& step);
  /// What the graph has used, or nothing when a step of it was refused. Checks the steps that `take` has not seen.
  const Ledger* ledger(const Graph& graph);

 private:
  const Specification& spec_;
  const RestrictionTable& restrictions_;
  Ledger ledger_;
  int taken_ = 0;
  bool refused_ = false;
};

}  // namespace syno
