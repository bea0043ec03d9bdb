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
        R"(What:      a Shift of a Reduce, or of a free piece of one, is none
Why:       the sum runs over all values in any order; weights that hold the coordinate are relabelled
When:      the coordinate is free: made of Reduces by one-to-one views, with the same weights on both sides of Splits
Soundness: exact (E1 and E3)
Status:    stable since 0.1
Example:   reduce k -> r; shift(r, 1) is refused)",
    .steps = {Primitive::kShift},
    .matches = matches,
    .rewrite = rewrite,
    .drops_steps = true,
};

}  // namespace syno
