#include "syno/rules/catalogue.h"

#include <algorithm>
#include <array>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::array kCatalogue = {
    &kMergeUndoesSplit,       &kMergeAboveSplit,        &kMergeAroundReduction,
    &kHeldRemainder,          &kRotationPastReduction,  &kNestedSplits,
    &kNestedMerges,           &kSplitUndoesMerge,       &kSplitOfReductions,
    &kSplitOfReductionPieces, &kNestedReductions,       &kMergeOfReduction,
    &kMergeOrderOfReduction,  &kShiftOfUnordered,       &kMergeOrderOfUnordered,
    &kSplitOfUnorderedPieces, &kViewAboveShare,         &kDroppedPieces,
    &kDroppedRemainders,      &kSplitAboveShare,        &kDroppedKinds,
    &kWindowOfReduction,      &kShiftOfReduction,       &kAbsorbedWeight,
    &kWeightsOnlyReduce,      &kPermutedInput,          &kJoinedPair,
    &kRotationOfMajor,        &kNestedStrides,          &kStrideOfSplit,
    &kAdjacentExpands,        &kPrimaryBlock,           &kFixedVariable,
    &kPiecesOfReduction,      &kUnorderedWithReduction, &kUnorderedWindow,
    &kShiftAboveUnfold,       &kSplitAboveUnfold,       &kMergeAboveUnfold,
    &kNestedUnfolds,          &kShiftAboveSplit,        &kMergeAboveShift,
};

/// With it, the default set has the version that files and results of earlier builds name.
constexpr std::uint64_t kVersionOffset = 0xA98BC44755F30000ULL;

}  // namespace

std::span<const Rule* const> catalogue() {
  return kCatalogue;
}

RuleSet::RuleSet() : rules_(kCatalogue.begin(), kCatalogue.end()) {
  sort();
}

void RuleSet::sort() {
  guarantees_ = {};
  for (const Rule* rule : rules_) guarantees_.add(rule->guarantees);
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    by_primitive_[p].clear();
    restrictions_[p].clear();
    for (const Rule* rule : rules_) {
      if (!rule->steps.holds(static_cast<Primitive>(p))) continue;
      by_primitive_[p].push_back(rule);
      if (rule->kind == RuleKind::kRestriction) restrictions_[p].push_back(rule);
    }
  }
}

std::vector<const Rule*> RuleSet::added() const {
  std::vector<const Rule*> list;
  for (const auto& owned : added_) list.push_back(&owned->rule());
  return list;
}

std::vector<const Rule*> RuleSet::known() const {
  std::vector<const Rule*> list(kCatalogue.begin(), kCatalogue.end());
  for (const Rule* rule : added()) list.push_back(rule);
  return list;
}

const Rule& RuleSet::find(std::string_view wanted) const {
  std::vector<std::string> names;
  for (const Rule* rule : known()) {
    if (rule->id == wanted || rule->name == wanted) return *rule;
    names.push_back(std::string(rule->id) + " " + std::string(rule->name));
  }
  throw UserError("unknown rule '" + std::string(wanted) +
                  "'\n  known rules: " + join(names, ", "));
}

void RuleSet::add(AddedRule rule) {
  auto owned = std::make_shared<const OwnedRule>(std::move(rule));
  const Rule& made = owned->rule();
  for (const Rule* other : known()) {
    for (const std::string_view word : {other->id, other->name}) {
      if (word != made.id && word != made.name) continue;
      throw Complaint("there is a rule '" + std::string(word) + "' already")
          .where("the rule '" + std::string(made.id) + "' that is added")
          .expected("an id and a name that no other rule has",
                    std::string(other->id) + " " + std::string(other->name))
          .error();
    }
  }
  rules_.push_back(&made);
  added_.push_back(std::move(owned));
  sort();
}

RuleSet RuleSet::none() {
  RuleSet set;
  set.rules_.clear();
  set.sort();
  return set;
}

RuleSet RuleSet::restrictions() {
  RuleSet set;
  std::erase_if(set.rules_, [](const Rule* rule) { return rule->kind != RuleKind::kRestriction; });
  set.sort();
  return set;
}

RuleSet RuleSet::exact() {
  RuleSet set;
  std::erase_if(set.rules_, [](const Rule* rule) { return rule->kind == RuleKind::kApproximate; });
  set.sort();
  return set;
}

bool RuleSet::is_on(std::string_view rule) const {
  return std::find(rules_.begin(), rules_.end(), &find(rule)) != rules_.end();
}

void RuleSet::set(std::string_view wanted, bool on) {
  const Rule& rule = find(wanted);
  std::vector<const Rule*> kept;
  for (const Rule* other : known()) {
    const bool was_on = std::find(rules_.begin(), rules_.end(), other) != rules_.end();
    if (other == &rule ? on : was_on) kept.push_back(other);
  }
  rules_ = std::move(kept);
  sort();
}

const Rule* RuleSet::rejecting_rule(const RuleContext& context) const {
  RestrictionTable restrictions;
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) restrictions[p] = restrictions_[p];
  for (const Rule* rule : by_primitive_[static_cast<std::size_t>(context.step.primitive)]) {
    if (rejects(*rule, context, restrictions)) return rule;
  }
  return nullptr;
}

const Rule* RuleSet::rejecting_rule(const Specification& spec, const Graph& graph,
                                    const Shape& input, std::span<const CoordinateId> match) const {
  for (const Rule* rule : rules_) {
    if (rule->rejects_match != nullptr && rule->rejects_match(spec, graph, input, match))
      return rule;
  }
  return nullptr;
}

std::string RuleSet::version() const {
  Hasher hasher("rules");
  for (const Rule* rule : rules_) hasher.add(rule->id).add(rule->name).add(rule->version);
  for (const Rule* rule : added()) {
    if (std::find(rules_.begin(), rules_.end(), rule) != rules_.end())
      hasher.add(rule_kind_name(rule->kind));
  }
  Hash128 hash = hasher.finish();
  hash.high ^= kVersionOffset;
  return hash.hex().substr(0, 12);
}

}  // namespace syno
