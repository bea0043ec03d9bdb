// A canonicalization rule is data: it reads one step on top of a graph and decides whether the step is rejected because
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

/// A property of every graph of a search while a rule is on, on which the search relies: it does not propose steps that
/// would violate it, and its completion bound leaves them out. A search reads the guarantees of a set of rules
/// (RuleSet::guarantees) and refers to no rule by its id.
enum class Guarantee : std::uint8_t {
  /// A coordinate that leaves the data in a contraction is an output iterator, a result of a Merge, or a Reduce; one that
  /// is made of reductions alone leaves only if an earlier weight holds it.
  kPlainDrops,
  /// If a window is made of reductions alone, a weight holds the window or a coordinate that it is made of.
  kHeldWindows,
  /// No Merge splits a coordinate that is made of reductions alone.
  kWholeReductions,
  /// No Split joins two Reduces that no weight holds.
  kSeparateReductions,
  /// The block of a Merge contains no primary variable.
  kSmallBlocks,
  /// No Merge makes a size with a variable of budget 0, unless a dimension of the specification has that size.
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

/// The arguments of a rule: the graph before the step, and the step.
struct RuleContext {
  const Specification& spec;
  const Graph& graph;
  const Step& step;
  /// What `graph` has used, if it is known; otherwise it is computed when a rule needs it.
  const Ledger* before = nullptr;
  /// What `graph` and `step` have used together, if it is known; the specification then admits the step.
  const Ledger* after = nullptr;
  /// Checks the steps of a rewrite while it applies them (rebuild.h), or nothing.
  Guard* guard = nullptr;
};

/// A plain function in a built-in rule; an object with state in a custom rule.
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
  /// Stable and short, such as "R1a".
  std::string_view id;
  /// A few words, such as "merge-above-split".
  std::string_view name;
  RuleKind kind;
  /// The headings What, Why, When, Soundness, Status and Example.
  std::string_view doc;
  /// The steps that the rule may reject; it is not called for others.
  PrimitiveSet steps = PrimitiveSet::all();
  /// For restrictions: whether the step is left out. For others: whether the pattern matches at all.
  RuleFunction<bool> matches;
  /// For exact and approximate rules: the graph that replaces `graph` plus `step`; it is complete if that one is.
  /// Nothing if the pattern does not match. Null for restrictions.
  RuleFunction<std::optional<Graph>> rewrite;
  /// Whenever the rule matches, the kept graph is the rejected graph with some steps removed and nothing else changed.
  /// Then the guard always holds, and no rewrite is needed to check it (a test proves that the flag is right).
  bool drops_steps = false;
  /// Properties of every graph of a search while the rule is on. A custom rule guarantees nothing.
  GuaranteeSet guarantees = {};
  /// For rules about complete graphs: whether this matching of the frontier to the input is rejected, because another
  /// complete graph is the same operator. Null for rules about steps.
  bool (*rejects_match)(const Specification& spec, const Graph& graph, const Shape& input,
                        std::span<const CoordinateId> match) = nullptr;
  /// For approximate rules: an upper bound on the fraction of the outputs that differ under these values of the sizes.
  double (*share)(const RuleContext& context, const Values& values) = nullptr;
  /// The versions of rule sets and the headers of space files are computed from it: change it when the rule rejects other
  /// steps, not when its doc is rewritten. For a custom rule, it is a digest of its doc and its version.
  std::string_view version = "";
};

/// What `rule` keeps instead of the graph plus the step; nothing if its pattern does not match, or if there is no such
/// graph because a step of it would have a size of 1.
std::optional<Graph> kept_form(const Rule& rule, const RuleContext& context);

/// Whether `rule` rejects the step. Exact and approximate rules apply only under the general guard: the graph that they
/// keep is legal in the specification under every binding that the rejected graph fits, passes `restrictions`, takes no
/// more steps, budget or limited resources than later steps can spare, and lets chains of views grow as far. The graph
/// itself must pass `restrictions`.
bool rejects(const Rule& rule, const RuleContext& context,
             std::span<const Rule* const> restrictions = {});

/// The restrictions that apply to each primitive.
using RestrictionTable = std::array<std::span<const Rule* const>, kPrimitiveCount>;
bool rejects(const Rule& rule, const RuleContext& context, const RestrictionTable& restrictions);

/// The general guard while a rewrite applies its steps: each must be admitted and pass the restrictions.
class Guard {
 public:
  Guard(const Specification& spec, const RestrictionTable& restrictions);

  /// Records the step on top of `graph`; false if it is not allowed.
  bool take(const Graph& graph, const Step& step);
  /// What the graph has used, or nothing if one of its steps was rejected. Checks the steps that `take` has not seen.
  const Ledger* ledger(const Graph& graph);

 private:
  const Specification& spec_;
  const RestrictionTable& restrictions_;
  Ledger ledger_;
  int taken_ = 0;
  bool rejected_ = false;
};

}  // namespace syno
