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
  const Graph refused = whole(c);
  return with_reduces(refused, free_region(refused, refused.steps().back().out[0]), c.guard);
}

std::optional<Graph> merged_rewrite(const RuleContext& c) {
  const Graph refused = whole(c);
  return with_ascending_merges(c.spec, refused, free_region(refused, refused.steps().back().out[0]),
                               c.guard);
}

}  // namespace

const Rule kSplitOfReductions{
    .id = "R3b",
    .name = "split-of-reductions",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Split of two Reduces, or free pieces of some, is one Reduce of the product; so is every other free
           piece of them
Why:       |r2|*r1 + r2 runs over every value below |r1|*|r2| once; weights that hold both are relabelled
When:      the same weights hold something of both; the Reduces that stand for the pieces cost no more budget
Soundness: exact (E1)
Status:    stable since 0.1
Example:   split(r:[C_in/s], q:[s]) is refused, reduce C_in is kept)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
    .guarantees = {Guarantee::kSeparateReductions},
};

const Rule kSplitOfReductionPieces{
    .id = "R3c",
    .name = "split-of-reduction-pieces",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Split of two free pieces of Reduces is one Reduce merged into what is left
Why:       free pieces run over all their values independently, however they were made
When:      R3b does not fire, for want of budget, and fewer Merges make pieces of the same sizes
Soundness: exact (E1)
Status:    unreleased, new after 0.1
Example:   merge(r, s) -> q, m; split(m, q) is refused, r is kept)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = merged_rewrite,
};

}  // namespace syno
