// The reasons for which a search rejects something: what they mean and what they belong to. Statistics are trees of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syno {

struct ReasonInfo {
  /// From the root of the tree: "specification", "budgets". Groups stand in the order of `reason_groups`.
  std::string group;
  std::string subgroup;
  /// What is rejected for this reason, in a line.
  std::string doc;
};

/// What a reason that a search counted stands for: a limit or another name of the ledger, "R6a view-above-share",
/// "completion_bound", a quality condition, "repeated_key". Unknown names belong to the group "other".
ReasonInfo reason_info(std::string_view reason);

/// The groups, in the order in which a search asks.
std::vector<std::string> reason_groups();

}  // namespace syno
