#include "syno/rules/catalogue.h"

#include <algorithm>
#include <array>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::array kCatalogue = {
    &kMergeUndoesSplit,      &kMergeAboveSplit,        &kNestedSplits,      &kNestedMerges,
    &kSplitUndoesMerge,      &kSplitOfReductions,      &kMergeOfReduction,  &kShiftOfUnordered,
    &kMergeOrderOfUnordered, &kSplitOfUnorderedPieces, &kViewAboveShare,    &kDroppedPieces,
    &kSplitAboveShare,       &kDroppedKinds,           &kWindowOfReduction, &kShiftOfReduction,
    &kAbsorbedWeight,
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

RuleSet::RuleSet()
    : rules_(kCatalogue.begin(), kCatalogue.end()), restrictions_(active_restrictions()) {}

std::vector<const Rule*> RuleSet::active_restrictions() const {
  std::vector<const Rule*> active;
  for (const Rule* rule : rules_) {
    if (rule->kind == RuleKind::kRestriction) active.push_back(rule);
  }
  return active;
}

RuleSet RuleSet::none() {
  RuleSet set;
  set.rules_.clear();
  set.restrictions_.clear();
  return set;
}

RuleSet RuleSet::restrictions() {
  RuleSet set;
  std::erase_if(set.rules_, [](const Rule* rule) { return rule->kind != RuleKind::kRestriction; });
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
  restrictions_ = active_restrictions();
}

const Rule* RuleSet::first_refusal(const RuleContext& context) const {
  for (const Rule* rule : rules_) {
    if (refuses(*rule, context, restrictions_)) return rule;
  }
  return nullptr;
}

std::string RuleSet::version() const {
  Hasher hasher("rules");
  for (const Rule* rule : rules_) hasher.add(rule->id).add(rule->name).add(rule->doc);
  return hasher.finish().hex().substr(0, 12);
}

}  // namespace syno
