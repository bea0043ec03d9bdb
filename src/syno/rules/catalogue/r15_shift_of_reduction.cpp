#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kShift && c.graph.is_reduction(c.step.in[0]);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  return c.graph;
}

}  // namespace

const Rule kShiftOfReduction{
    .id = "R15",
    .name = "shift-of-reduction",
    .kind = RuleKind::kExact,
    .doc = R"(What:      a Shift of a Reduce is none
Why:       the sum runs over all values in any order; weights that hold the Reduce are relabelled
When:      always
Soundness: exact (E1 and E3)
Status:    stable since 0.1
Example:   reduce k -> r; shift(r, 1) is refused)",
    .steps = {Primitive::kShift},
    .matches = matches,
    .rewrite = rewrite,
    .drops_steps = true,
};

}  // namespace syno
