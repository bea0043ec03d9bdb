#include "syno/space/reasons.h"

#include <array>

#include "syno/quality/quality.h"
#include "syno/rules/catalogue.h"
#include "syno/rules/docs.h"
#include "syno/space/bound.h"
#include "syno/space/macs_bound.h"
#include "syno/spec/ledger.h"
#include "syno/spec/limits.h"

namespace syno {
namespace {

constexpr std::string_view kSpecification = "specification";
constexpr std::string_view kRules = "rules";
constexpr std::string_view kBound = "completion bound";
constexpr std::string_view kQuality = "quality";
constexpr std::string_view kCosts = "costs";
constexpr std::string_view kRepeated = "repeated keys";
constexpr std::string_view kOther = "other";

struct Entry {
  Reason reason;
  std::string_view group;
  std::string_view subgroup;
  /// Empty: that of the limit of this name.
  std::string_view doc;
};

constexpr std::array kEntries = {
    Entry{reason::kBudget, kSpecification, "budgets",
          "a variable is used more often than its budget allows"},
    Entry{reason::kReductionRatio, kSpecification, "budgets", ""},
    Entry{reason::kDepth, kSpecification, "caps", ""},
    Entry{reason::kChain, kSpecification, "caps", ""},
    Entry{reason::kWeights, kSpecification, "caps", ""},
    Entry{reason::kCap, kSpecification, "caps",
          "there are more steps of one primitive than its limit allows"},
    Entry{reason::kIllegalSize, kSpecification, "sizes",
          "a coordinate has an illegal size: 1, a primary variable in a denominator, or too many "
          "variables or powers"},
    Entry{reason::kFit, kSpecification, "fit",
          "a size is a positive integer under too few bindings"},
    Entry{reason::kShiftAmount, kSpecification, "steps",
          "max_shift_amount or negative_shifts do not allow the amount of a Shift"},
    Entry{reason::kRepeat, kSpecification, "steps", ""},
    Entry{reason::kEvenWindow, kSpecification, "steps", ""},
    Entry{reason::kUnfoldRatio, kSpecification, "steps", ""},
    Entry{reason::kWindow, kSpecification, "steps", ""},
    Entry{reason::kCausal, kSpecification, "steps",
          "a centered window on a causal dimension, or a causal window on another dimension"},
    Entry{reason::kPassedThrough, kSpecification, "steps",
          "a step uses a dimension that is passed through"},
    Entry{reason::kElementWise, kSpecification, "weights", ""},
    Entry{reason::kWeightParams, kSpecification, "weights", ""},
    Entry{reason::kDropped, kSpecification, "weights", ""},
    Entry{reason::kJoined, kSpecification, "weights", ""},
    Entry{kBoundReason, kBound, "",
          "no operator can be reached within the remaining steps and budgets"},
    Entry{kMacsBoundReason, kBound, "",
          "every operator that can be reached needs more MACs than max_macs"},
    Entry{reason::kNoWeight, kQuality, "", "the operator has no weight"},
    Entry{reason::kInputUnread, kQuality, "", "an element of the input is never read"},
    Entry{reason::kOutputConstant, kQuality, "", "every output is 0"},
    Entry{reason::kEqualOutputs, kQuality, "", "two outputs are equal for all inputs and weights"},
    Entry{reason::kWastedExpand, kQuality, "", "an Expand of reductions only scales the output"},
    Entry{reason::kWastedUnfold, kQuality, "",
          "an Unfold has a window of reductions that no weight holds"},
    Entry{reason::kAbsorbedWeight, kQuality, "",
          "the index of a weight follows from the index of another weight"},
    Entry{reason::kWastedReduce, kQuality, "", "only weights depend on a reduction"},
    Entry{reason::kPooling, kQuality, "", ""},
    Entry{reason::kReadsFuture, kQuality, "",
          "an output of a causal dimension reads a later input position"},
    Entry{"min_macs", kCosts, "", ""},
    Entry{"max_macs", kCosts, "", ""},
    Entry{"min_params", kCosts, "", ""},
    Entry{"max_params", kCosts, "", ""},
    Entry{"repeated_key", kRepeated, "", "the operator is equal to one that is already enumerated"},
};

}  // namespace

ReasonInfo reason_info(std::string_view reason) {
  for (const Entry& entry : kEntries) {
    if (entry.reason != reason) continue;
    const std::string_view doc = entry.doc.empty() ? limit_option(reason).doc : entry.doc;
    return {std::string(entry.group), std::string(entry.subgroup), std::string(doc)};
  }
  const std::string_view id = reason.substr(0, reason.find(' '));
  for (const Rule* rule : catalogue()) {
    if (rule->id == id) {
      return {std::string(kRules), std::string(rule_kind_name(rule->kind)),
              rule_doc_parts(*rule).front().text};
    }
  }
  // Only rules have names of two words.
  if (id.size() < reason.size() && reason.find(' ', id.size() + 1) == std::string_view::npos)
    return {std::string(kRules), "added", "a rule that is not in the catalogue"};
  return {std::string(kOther), "", ""};
}

std::vector<std::string> reason_groups() {
  std::vector<std::string> groups;
  for (const std::string_view group :
       {kSpecification, kBound, kRules, kQuality, kCosts, kRepeated, kOther})
    groups.emplace_back(group);
  return groups;
}

}  // namespace syno
