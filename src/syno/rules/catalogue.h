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

/// All built-in rules, in the order in which they are asked.
std::span<const Rule* const> catalogue();

/// Which rules are on. A value: copies are independent.
class RuleSet {
 public:
  /// All rules on.
  RuleSet();
  static RuleSet none();
  /// Restrictions alone: the space as the specification means it, with all its redundancy.
  static RuleSet restrictions();
  /// All rules but the approximate ones: nothing is lost.
  static RuleSet exact();

  /// Adds a rule, which is on and is asked after all others. Copies of the set share it. Throws UserError for a rule
  /// that has no id or name, one that exists already, or functions that do not go with its kind.
  void add(AddedRule rule);
  /// Switches one rule by id or name; throws UserError that lists the rules.
  void set(std::string_view rule, bool on);
  bool is_on(std::string_view rule) const;
  const std::vector<const Rule*>& rules() const { return rules_; }
  /// Whether a rule that is on guarantees this of every graph of a search.
  bool guarantees(Guarantee guarantee) const { return guarantees_.holds(guarantee); }

  /// The first rule that refuses the step, or null.
  const Rule* first_refusal(const RuleContext& context) const;
  /// The first rule that refuses a complete graph with this matching, or null.
  const Rule* first_refusal(const Specification& spec, const Graph& graph, const Shape& input,
                            std::span<const CoordinateId> match) const;
  /// Changes when a rule is added, changed or switched.
  std::string version() const;
  /// A rule by id or name, on or off; throws UserError that lists the rules.
  const Rule& find(std::string_view rule) const;
  /// The rules that are not of the catalogue, on or off.
  std::vector<const Rule*> added() const;

 private:
  /// The catalogue and what was added to it.
  std::vector<const Rule*> known() const;
  /// The rules of `rules_` by the primitive of the step that they are asked about, and what they guarantee together.
  void sort();

  std::vector<std::shared_ptr<const OwnedRule>> added_;
  std::vector<const Rule*> rules_;
  std::array<std::vector<const Rule*>, kPrimitiveCount> by_primitive_;
  std::array<std::vector<const Rule*>, kPrimitiveCount> restrictions_;
  GuaranteeSet guarantees_;
};

/// The Status of a rule that no release has yet. A released one says "stable since" and the release.
inline constexpr std::string_view kUnreleased = "unreleased, new after 0.1";
/// The doc of a rule as versions of rules are computed from it. A rule that no release has counts as one of the next
/// release, so that a release does not change the versions that files hold.
std::string versioned_doc(const Rule& rule);

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
