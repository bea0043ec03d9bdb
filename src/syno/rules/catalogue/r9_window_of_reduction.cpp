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
        R"(What:      no Unfold whose window is made of Reduces that no weight holds, and none whose two sides are made of reductions
           only
Why:       the first is plain average pooling over overlapping windows, the second sums the same elements again
When:      always
Soundness: restriction: excludes plain pooling windows
Status:    stable since 0.1
Example:   reduce k -> r; unfold(h, r) is left out until a weight holds r)",
    .steps = {Primitive::kUnfold},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kHeldWindows},
};

}  // namespace syno
