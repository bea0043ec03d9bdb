#include "syno/rules/catalogue.h"

#include <algorithm>
#include <array>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::array kCatalogue = {
    &kMergeUndoesSplit,       &kMergeAboveSplit,
    &kNestedSplits,           &kNestedMerges,
    &kSplitUndoesMerge,       &kSplitOfReductions,
    &kSplitOfReductionPieces, &kMergeOfReduction,
    &kMergeOrderOfReduction,  &kShiftOfUnordered,
    &kMergeOrderOfUnordered,  &kSplitOfUnorderedPieces,
    &kViewAboveShare,         &kDroppedPieces,
    &kSplitAboveShare,        &kDroppedKinds,
    &kWindowOfReduction,      &kShiftOfReduction,
    &kAbsorbedWeight,         &kWeightsOnlyReduce,
    &kPermutedInput,          &kJoinedPair,
    &kRotationOfMajor,        &kPrimaryBlock,
    &kFixedVariable,          &kPiecesOfReduction,
    &kUnorderedWithReduction, &kUnorderedWindow,
};

const Rule& find_rule(std::string_view wanted) {
  std::vector<std::string> names;
  for (const Rule* rule : kCatalogue) {
    if (rule->id == wanted || rule->name == wanted) return *rule;
    names.push_back(std::string(rule->id) + " " + std::string(rule->name));
  }
  throw UserError("unknown rule '" + std::string(wanted) +
                  "'\n  known rules: " + join(names, ", "));
}

}  // namespace

std::span<const Rule* const> catalogue() {
  return kCatalogue;
}

RuleSet::RuleSet() : rules_(kCatalogue.begin(), kCatalogue.end()) {
  sort();
}

void RuleSet::sort() {
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

bool RuleSet::is_on(std::string_view rule) const {
  return std::find(rules_.begin(), rules_.end(), &find_rule(rule)) != rules_.end();
}

void RuleSet::set(std::string_view wanted, bool on) {
  const Rule& rule = find_rule(wanted);
  std::vector<const Rule*> kept;
  for (const Rule* other : kCatalogue) {
    const bool was_on = std::find(rules_.begin(), rules_.end(), other) != rules_.end();
    if (other == &rule ? on : was_on) kept.push_back(other);
  }
  rules_ = std::move(kept);
  sort();
}

const Rule* RuleSet::first_refusal(const RuleContext& context) const {
  RestrictionTable restrictions;
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) restrictions[p] = restrictions_[p];
  for (const Rule* rule : by_primitive_[static_cast<std::size_t>(context.step.primitive)]) {
    if (refuses(*rule, context, restrictions)) return rule;
  }
  return nullptr;
}

const Rule* RuleSet::first_refusal(const Specification& spec, const Graph& graph,
                                   const Shape& input, std::span<const CoordinateId> match) const {
  for (const Rule* rule : rules_) {
    if (rule->refuses_match != nullptr && rule->refuses_match(spec, graph, input, match))
      return rule;
  }
  return nullptr;
}

std::string RuleSet::version() const {
  Hasher hasher("rules");
  for (const Rule* rule : rules_) hasher.add(rule->id).add(rule->name).add(rule->doc);
  return hasher.finish().hex().substr(0, 12);
}

}  // namespace syno
