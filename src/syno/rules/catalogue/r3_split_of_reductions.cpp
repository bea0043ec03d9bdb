#include "syno/rules/catalogue.h"
#include "syno/rules/free_region.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit) return false;
  const Coordinate& major = c.graph.coordinate(c.step.in[0]);
  const Coordinate& minor = c.graph.coordinate(c.step.in[1]);
  return major.free == kFreeReduction && minor.free == kFreeReduction &&
         major.weights == minor.weights;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Graph rejected = whole(c);
  return with_reduces(rejected, free_region(rejected, rejected.steps().back().out[0]), c.guard);
}

std::optional<Graph> merged_rewrite(const RuleContext& c) {
  const Graph rejected = whole(c);
  return with_ascending_merges(c.spec, rejected,
                               free_region(rejected, rejected.steps().back().out[0]), c.guard);
}

}  // namespace

const Rule kSplitOfReductions{
    .id = "R3b",
    .name = "split-of-reductions",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Split of two Reduces, or of free pieces of Reduces, is rejected. One Reduce of the product is kept, and
           every other free piece also becomes one Reduce.
Why:       |r2|*r1 + r2 takes every value below |r1|*|r2| once. Weights that hold both are relabeled.
When:      The same weights hold something of both. The Reduces that replace the pieces cost no more budget.
Soundness: exact (E1)
Status:    stable since 0.1
Example:   split(r:[C_in/s], q:[s]) is rejected; reduce C_in is kept.)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
    .guarantees = {Guarantee::kSeparateReductions},
    .version = "74ab604e",
};

const Rule kSplitOfReductionPieces{
    .id = "R3c",
    .name = "split-of-reduction-pieces",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Split of two free pieces of Reduces is rejected. One Reduce that is merged into the remaining pieces is
           kept.
Why:       Free pieces take all their values independently of each other, no matter which steps made them.
When:      R3b does not apply because the budget is too small, and pieces of the same sizes can be made with fewer
           Merges.
Soundness: exact (E1)
Status:    unreleased, new after 0.1
Example:   merge(r, s) -> q, m; split(m, q) is rejected; r is kept.)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = merged_rewrite,
    .version = "69b0d886",
};

}  // namespace syno
