#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kUnfold) return false;
  const auto [i, j] = c.step.in;
  return c.graph.reductions_only(j) && (!seen_by_weight(c.graph, j) || c.graph.reductions_only(i));
}

}  // namespace

const Rule kWindowOfReduction{
    .id = "R9",
    .name = "window-of-reduction",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      An Unfold is left out if its window consists of Reduces that no weight holds, or if both of its inputs
           consist of reductions only.
Why:       The first is plain average pooling over overlapping windows. The second sums the same elements several
           times.
When:      Always.
Soundness: restriction. It excludes plain pooling windows.
Status:    stable since 0.1
Example:   reduce k -> r; unfold(h, r) is left out until a weight holds r.)",
    .steps = {Primitive::kUnfold},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kHeldWindows},
    .version = "2da266d5",
};

}  // namespace syno
