// Rules from outside the catalogue: what a user writes, and how a set of rules keeps it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "syno/rules/rule.h"

namespace syno {

/// A rule that is added to a set. Several threads may ask it at once.
struct AddedRule {
  /// Letters, digits, '-', '_' and '.'; no other rule of the set has it.
  std::string id;
  std::string name;
  RuleKind kind = RuleKind::kRestriction;
  /// In words; the first line stands in lists. Headings as in the catalogue are welcome, not needed.
  std::string doc;
  /// To be changed when the functions change, so that results of an earlier version are told apart.
  std::string version;
  /// The steps that the rule may reject.
  PrimitiveSet steps = PrimitiveSet::all();
  /// As in Rule. An exact or approximate rule may have a rewrite alone.
  std::function<bool(const RuleContext&)> matches;
  std::function<std::optional<Graph>(const RuleContext&)> rewrite;
};

/// An added rule in the form in which rules are asked; it stays where it is.
class OwnedRule {
 public:
  /// Throws UserError that says what is missing or too much.
  explicit OwnedRule(AddedRule source);
  OwnedRule(const OwnedRule&) = delete;
  OwnedRule& operator=(const OwnedRule&) = delete;

  const Rule& rule() const { return rule_; }

 private:
  AddedRule source_;
  RuleFunction<bool>::Stateful matches_;
  RuleFunction<std::optional<Graph>>::Stateful rewrite_;
  std::string version_;
  Rule rule_;
};

}  // namespace syno
