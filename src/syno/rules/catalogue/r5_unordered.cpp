#include "syno/rules/catalogue.h"
#include "syno/rules/free_region.h"

namespace syno {
namespace {

// Whether `id` is the iterator of an unordered dimension or a free piece of one.
bool is_free_unordered(const Graph& graph, CoordinateId id) {
  return graph.coordinate(id).free >= 0;
}

bool shift_matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kShift && is_free_unordered(c.graph, c.step.in[0]);
}

std::optional<Graph> shift_rewrite(const RuleContext& c) {
  return c.graph;
}

bool merge_matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge && is_free_unordered(c.graph, c.step.in[0]);
}

bool split_matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit) return false;
  const Coordinate& major = c.graph.coordinate(c.step.in[0]);
  const Coordinate& minor = c.graph.coordinate(c.step.in[1]);
  return major.free >= 0 && major.free == minor.free && major.weights == minor.weights;
}

}  // namespace

const Rule kShiftOfUnordered{
    .id = "R5a",
    .name = "shift-of-unordered",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Shift of the iterator of an unordered output dimension, or of a free piece of it, is rejected. The form
           without the Shift is kept.
Why:       The Shift permutes the index of this dimension. Weights that hold the coordinate are relabeled.
When:      The coordinate is free, which means that only one-to-one views lead from the iterator to it.
Soundness: exact (E4 and E3)
Status:    stable since 0.1
Example:   shift(o:[C_out: unordered], 1) is rejected.)",
    .steps = {Primitive::kShift},
    .matches = shift_matches,
    .rewrite = shift_rewrite,
    .drops_steps = true,
    .version = "84f21ad9",
};

const Rule kMergeOrderOfUnordered{
    .id = "R5b",
    .name = "merge-order-of-unordered",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      The pieces of an unordered iterator are made only by Merges of quotients with ascending blocks. Other
           orders of the blocks are rejected.
Why:       To exchange pieces is to permute the index of the dimension. Weights that hold the iterator hold all
           pieces.
When:      Always.
Soundness: exact (E4)
Status:    stable since 0.1
Example:   One of merge(o, g) and merge(o, g^-1*C_out) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = merge_matches,
    .rewrite = ascending_merges_rewrite,
    .version = "8124ccb5",
};

const Rule kSplitOfUnorderedPieces{
    .id = "R5c",
    .name = "split-of-unordered-pieces",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Split of two pieces of one unordered iterator, in either order, is rejected. A piece that needs fewer
           Merges, or the iterator itself, is kept.
Why:       The result is a permutation of the index of the dimension.
When:      The same weights hold something of both.
Soundness: exact (E4)
Status:    stable since 0.1
Example:   merge(o, g) -> q, m; split(m, q) is rejected (a channel shuffle of the output).)",
    .steps = {Primitive::kSplit},
    .matches = split_matches,
    .rewrite = ascending_merges_rewrite,
    .version = "451cc7ed",
};

}  // namespace syno
