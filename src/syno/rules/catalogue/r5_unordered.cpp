#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool shift_matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kShift && is_unordered_iterator(c.graph, c.step.in[0]);
}

std::optional<Graph> shift_rewrite(const RuleContext& c) {
  return c.graph;
}

bool merge_matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge && is_unordered_iterator(c.graph, c.step.in[0]) &&
         c.graph.extent(c.step.in[0]) / c.step.size < c.step.size;
}

std::optional<Graph> merge_rewrite(const RuleContext& c) {
  Graph graph = c.graph;
  graph.apply(Step::merge(c.step.in[0], graph.extent(c.step.in[0]) / c.step.size));
  return graph;
}

bool split_matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit) return false;
  const auto [i, j] = c.step.in;
  return is_unshared(c.graph, i, Primitive::kMerge) && is_unshared(c.graph, j, Primitive::kMerge) &&
         step_of(c.graph, i) == step_of(c.graph, j) &&
         is_unordered_iterator(c.graph, c.graph.producer(i)->in[0]);
}

std::optional<Graph> split_rewrite(const RuleContext& c) {
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0])});
  return rebuild.graph();
}

}  // namespace

const Rule kShiftOfUnordered{
    .id = "R5a",
    .name = "shift-of-unordered",
    .kind = RuleKind::kExact,
    .doc = R"(What:      a Shift of an iterator of an unordered output dimension is none
Why:       it permutes the index of that dimension; weights that hold the iterator are relabelled
When:      always
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
    .doc = R"(What:      an unordered iterator is merged by one of the blocks B and N/B only
Why:       exchanging quotient and remainder permutes the index of the dimension
When:      the quotient comes before the block in the order of sizes
Soundness: exact (E4)
Status:    stable since 0.1
Example:   of merge(o, g) and merge(o, g^-1*C_out) one is kept)",
    .steps = {Primitive::kMerge},
    .matches = merge_matches,
    .rewrite = merge_rewrite,
};

const Rule kSplitOfUnorderedPieces{
    .id = "R5c",
    .name = "split-of-unordered-pieces",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      the two pieces of an unordered iterator, split back together in any order, are the iterator
Why:       the result permutes the index of the dimension
When:      no weight holds either piece
Soundness: exact (E4)
Status:    stable since 0.1
Example:   merge(o, g) -> q, m; split(m, q) is refused (a channel shuffle of the output))",
    .steps = {Primitive::kSplit},
    .matches = split_matches,
    .rewrite = split_rewrite,
    .drops_steps = true,
};

}  // namespace syno
