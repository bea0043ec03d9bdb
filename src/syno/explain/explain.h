// Explanations: how an operator comes about in a search of its specification.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syno/explain/usage.h"
#include "syno/graph/operator.h"
#include "syno/space/accept.h"
#include "syno/space/path.h"

namespace syno {

/// A step of the operator that was no child where another one was taken.
struct RejectedStep {
  std::string step;
  /// As statistics count it: a rule, a limit, "order", "completion_bound".
  std::string reason;
};

struct ExplainedStep {
  /// The step as in the text format, with the names of the graph built so far.
  std::string step;
  /// Children of the graph before it, this step among them.
  std::int64_t children = 0;
  /// Why other steps of the specification were none, by reason.
  Rejections rejected;
  /// Other steps of this operator that could have come here, and what rejects them: what makes the order the way it is.
  std::vector<RejectedStep> others;
};

struct Explanation {
  /// What speaks against the operator; empty when the specification admits it.
  std::vector<RejectionReason> rejections;
  /// A rule that rejects the complete graph with its matching, because another one stands for it; or nothing.
  std::string rejected_match;
  Path path;
  /// One a step of the path.
  std::vector<ExplainedStep> steps;
  Usage usage;
  Hash128 key;
  /// Whether a search with these rules lists this structure (unless an equal one comes first).
  bool enumerated() const { return rejections.empty() && rejected_match.empty() && path.reached; }
};

/// `op` has the shapes of `spec`. Throws UserError when it has not, or has unknown variables, or `spec` has no bindings.
Explanation explain(const Operator& op, const Specification& spec, const RuleSet& rules);

}  // namespace syno
