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

std::optional<Graph> rewrite(const RuleContext& c) {
  const Graph refused = whole(c);
  const FreeRegion region = free_region(refused, refused.steps().back().out[0]);
  if (has_ascending_merges(c.spec, refused, region)) return std::nullopt;
  return with_ascending_merges(c.spec, refused, region, c.guard);
}

}  // namespace

const Rule kShiftOfUnordered{
    .id = "R5a",
    .name = "shift-of-unordered",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Shift of an iterator of an unordered output dimension, or of a free piece of one, is none
Why:       it permutes the index of that dimension; weights that hold the coordinate are relabelled
When:      the coordinate is free: made of the iterator by one-to-one views
Soundness: exact (E4 and E3)
Status:    stable since 0.1
Example:   shift(o:[C_out: unordered], 1) is refused)",
    .steps = {Primitive::kShift},
    .matches = shift_matches,
    .rewrite = shift_rewrite,
    .drops_steps = true,
};

const Rule kMergeOrderOfUnordered{
    .id = "R5b",
    .name = "merge-order-of-unordered",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      the pieces of an unordered iterator are made by merging quotients with ascending blocks only
Why:       exchanging pieces permutes the index of the dimension; weights that hold the iterator hold all pieces
When:      always
Soundness: exact (E4)
Status:    stable since 0.1
Example:   of merge(o, g) and merge(o, g^-1*C_out) one is kept)",
    .steps = {Primitive::kMerge},
    .matches = merge_matches,
    .rewrite = rewrite,
};

const Rule kSplitOfUnorderedPieces{
    .id = "R5c",
    .name = "split-of-unordered-pieces",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      two pieces of one unordered iterator, split together in any order, are a piece that fewer Merges make,
           or the iterator itself
Why:       the result permutes the index of the dimension
When:      the same weights hold something of both
Soundness: exact (E4)
Status:    stable since 0.1
Example:   merge(o, g) -> q, m; split(m, q) is refused (a channel shuffle of the output))",
    .steps = {Primitive::kSplit},
    .matches = split_matches,
    .rewrite = rewrite,
};

}  // namespace syno
