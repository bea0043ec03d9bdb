#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kShift &&
         c.graph.coordinate(c.step.in[0]).free == kFreeReduction;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  return c.graph;
}

}  // namespace

const Rule kShiftOfReduction{
    .id = "R15a",
    .name = "shift-of-reduction",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Shift of a Reduce, or of a free piece of a Reduce, is rejected. The form without the Shift is kept.
Why:       The sum takes all values in any order. Weights that hold the coordinate are relabeled.
When:      The coordinate is free: only one-to-one views lead from Reduces to it, and the same weights hold both sides
           of its Splits.
Soundness: exact (E1 and E3)
Status:    stable since 0.1
Example:   reduce k -> r; shift(r, 1) is rejected.)",
    .steps = {Primitive::kShift},
    .matches = matches,
    .rewrite = rewrite,
    .drops_steps = true,
    .version = "57934df8",
};

}  // namespace syno
