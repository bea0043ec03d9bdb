// The page docs/rules.md, generated from the catalogue.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "syno/rules/rule.h"

namespace syno {

/// The headings of a rule's doc, in order.
inline constexpr std::array<std::string_view, 6> kRuleHeadings = {"What",      "Why",    "When",
                                                                  "Soundness", "Status", "Example"};

struct RuleDocPart {
  std::string_view heading;
  /// In one line.
  std::string text;
};

/// The parts of `rule.doc`, one a heading, in order. Throws InternalError when a heading is missing or out of order.
std::vector<RuleDocPart> rule_doc_parts(const Rule& rule);

/// What the rule rejects, in one line: under What, or the first line of a doc without headings.
std::string rule_summary(const Rule& rule);

/// The page, in Markdown.
std::string rules_page();

}  // namespace syno
