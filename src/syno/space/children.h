// Children of a partial graph: the steps that the specification allows, no rule rejects, and from which an operator can
// still be reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syno/graph/graph.h"
#include "syno/rules/catalogue.h"
#include "syno/space/bound.h"
#include "syno/space/macs_bound.h"
#include "syno/space/space.h"
#include "syno/spec/ledger.h"

namespace syno {

/// A partial graph with what it has used of its specification.
struct PartialGraph {
  Graph graph;
  Ledger ledger;
};

class ChildGenerator {
 public:
  /// Keeps a reference: `spec` outlives the generator.
  ChildGenerator(const Specification& spec, RuleSet rules, BoundMode bound = BoundMode::kFull);

  PartialGraph root() const;
  /// The steps below which an operator of at most `max_depth` primitives lies, in a fixed order. Reductions come first
  /// and in ascending order of size, so each multiset of them is met once.
  std::vector<Step> steps(const PartialGraph& parent, std::int64_t max_depth);
  /// The child; throws UserError when the specification does not allow the step.
  PartialGraph child(const PartialGraph& parent, const Step& step) const;
  /// Why `step` is no child of `parent`; empty when it is one.
  std::string why_not(const PartialGraph& parent, const Step& step, std::int64_t max_depth);

  const Specification& specification() const { return spec_; }
  const RuleSet& rules() const { return rules_; }
  const Rejections& rejections() const { return rejections_; }

 private:
  /// The first reason against `step`, or empty. macs_ has begun with `parent`.
  std::string rejection_reason(const PartialGraph& parent, const State& state, const Step& step,
                               std::int64_t max_depth);

  const Specification& spec_;
  RuleSet rules_;
  StateSpace space_;
  CompletionBound bound_;
  MacsBound macs_;
  bool bounds_macs_;
  Rejections rejections_;
};

}  // namespace syno
