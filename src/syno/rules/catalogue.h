// The catalogue of rules, read from top to bottom, and sets of rules that are switched on.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syno/rules/added.h"
#include "syno/rules/rule.h"
#include "syno/support/hash.h"

namespace syno {

/// All built-in rules, in the order in which they are evaluated.
std::span<const Rule* const> catalogue();

/// The rules that are on. A value: copies are independent.
class RuleSet {
 public:
  /// All rules are on.
  RuleSet();
  static RuleSet none();
  /// Restrictions alone: the space that the specification defines, with all its redundancy.
  static RuleSet restrictions();
  /// All rules except the approximate ones: no operator is lost.
  static RuleSet exact();

  /// Adds a rule, which is on and is evaluated after all others. Copies of the set share it. Throws UserError if the rule
  /// has no id or name, uses those of another rule, or has functions that do not fit its kind.
  void add(AddedRule rule);
  /// Switches a rule, given by id or name; throws UserError that lists the rules.
  void set(std::string_view rule, bool on);
  bool is_on(std::string_view rule) const;
  const std::vector<const Rule*>& rules() const { return rules_; }
  /// Whether a rule that is on guarantees this for every graph of a search.
  bool guarantees(Guarantee guarantee) const { return guarantees_.holds(guarantee); }

  /// The first rule that rejects the step, or null.
  const Rule* rejecting_rule(const RuleContext& context) const;
  /// The first rule that rejects a complete graph with this matching, or null.
  const Rule* rejecting_rule(const Specification& spec, const Graph& graph, const Shape& input,
                             std::span<const CoordinateId> match) const;
  /// Changes if a rule is added, changed or switched.
  std::string version() const;
  /// A rule by id or name, on or off; throws UserError that lists the rules.
  const Rule& find(std::string_view rule) const;
  /// The rules that are not in the catalogue, on or off.
  std::vector<const Rule*> added() const;

 private:
  /// The catalogue and the added rules.
  std::vector<const Rule*> known() const;
  /// Groups the rules of `rules_` by the primitive of the steps that they apply to, and collects their guarantees.
  void sort();

  std::vector<std::shared_ptr<const OwnedRule>> added_;
  std::vector<const Rule*> rules_;
  std::array<std::vector<const Rule*>, kPrimitiveCount> by_primitive_;
  std::array<std::vector<const Rule*>, kPrimitiveCount> restrictions_;
  GuaranteeSet guarantees_;
};

/// The Status of a rule that no release contains yet. A released rule says "stable since" and the release.
inline constexpr std::string_view kUnreleased = "unreleased, new after 0.1";
// One per file in catalogue/.
extern const Rule kMergeUndoesSplit;
extern const Rule kMergeAboveSplit;
extern const Rule kMergeAroundReduction;
extern const Rule kHeldRemainder;
extern const Rule kRotationPastReduction;
extern const Rule kNestedSplits;
extern const Rule kNestedMerges;
extern const Rule kSplitUndoesMerge;
extern const Rule kSplitOfReductions;
extern const Rule kSplitOfReductionPieces;
extern const Rule kNestedReductions;
extern const Rule kMergeOfReduction;
extern const Rule kMergeOrderOfReduction;
extern const Rule kShiftOfUnordered;
extern const Rule kMergeOrderOfUnordered;
extern const Rule kSplitOfUnorderedPieces;
// The names of R6a and R7 say "share" for what a contraction takes, because stores and files of spaces hold them.
extern const Rule kViewAboveShare;
extern const Rule kDroppedPieces;
extern const Rule kDroppedRemainders;
extern const Rule kSplitAboveShare;
extern const Rule kDroppedKinds;
extern const Rule kWindowOfReduction;
extern const Rule kShiftOfReduction;
extern const Rule kAbsorbedWeight;
extern const Rule kWeightsOnlyReduce;
extern const Rule kJoinedPair;
extern const Rule kRotationOfMajor;
extern const Rule kPermutedInput;
extern const Rule kPrimaryBlock;
extern const Rule kFixedVariable;
extern const Rule kUnorderedWithReduction;
extern const Rule kPiecesOfReduction;
extern const Rule kUnorderedWindow;
extern const Rule kNestedStrides;
extern const Rule kStrideOfSplit;
extern const Rule kAdjacentExpands;
extern const Rule kShiftAboveUnfold;
extern const Rule kSplitAboveUnfold;
extern const Rule kMergeAboveUnfold;
extern const Rule kNestedUnfolds;
extern const Rule kShiftAboveSplit;
extern const Rule kMergeAboveShift;

}  // namespace syno
