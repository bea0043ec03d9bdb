#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit) return false;
  const auto [i, j] = c.step.in;
  return is_unshared(c.graph, i, Primitive::kMerge) && is_unshared(c.graph, j, Primitive::kMerge) &&
         step_of(c.graph, i) == step_of(c.graph, j) && c.graph.coordinate(i).index == 0;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0])});
  return rebuild.graph();
}

}  // namespace

const Rule kSplitUndoesMerge{
    .id = "R3a",
    .name = "split-undoes-merge",
    .kind = RuleKind::kExact,
    .doc = R"(What:      split(i div B, i mod B) is rejected. The coordinate i is kept.
Why:       (i div B)*B + i mod B equals i, so the two steps have no effect.
When:      No weight holds one of the pieces.
Soundness: exact
Status:    stable since 0.1
Example:   merge(h, s) -> q, m; split(q, m) is rejected; h is kept.)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
    .drops_steps = true,
    .version = "3d778ab0",
};

}  // namespace syno
