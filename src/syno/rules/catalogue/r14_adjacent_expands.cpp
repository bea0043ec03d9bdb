#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// The step that takes the other piece of the Merge that made `id` out of the data, if it is an Expand; -1 otherwise.
int expand_of_other_piece(const Graph& graph, CoordinateId id) {
  const Step& merge = *graph.producer(id);
  const CoordinateId other = merge.out[0] == id ? merge.out[1] : merge.out[0];
  if (graph.weight_count(other) > 0) return -1;
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    const Step& step = graph.steps()[s];
    if (step.primitive == Primitive::kExpand && step.in[0] == other) return static_cast<int>(s);
  }
  return -1;
}

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kExpand &&
         is_unshared(c.graph, c.step.in[0], Primitive::kMerge) &&
         expand_of_other_piece(c.graph, c.step.in[0]) >= 0;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const int expand = expand_of_other_piece(c.graph, c.step.in[0]);
  const Step& merge = *c.graph.producer(c.step.in[0]);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0]), static_cast<std::size_t>(expand)});
  rebuild.add(Step::expand(rebuild.now(merge.in[0])));
  return rebuild.graph();
}

}  // namespace

const Rule kAdjacentExpands{
    .id = "R14",
    .name = "adjacent-expands",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      Expands of both pieces of one Merge are rejected. One Expand of the merged coordinate is kept.
Why:       No other step reads the pieces, so the two Expands together are an Expand of the merged coordinate.
When:      No weight holds a piece.
Soundness: exact
Status:    unreleased, new after 0.1
Example:   merge(h, s) -> q, m; expand(q); expand(m) is rejected; expand(h) is kept.)",
    .steps = {Primitive::kExpand},
    .matches = matches,
    .rewrite = rewrite,
    .version = "1bd160ea",
};

}  // namespace syno
