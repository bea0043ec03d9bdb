#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// Free pieces are left alone: R4b and R5b order them.
bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kMerge ||
      !is_unshared(c.graph, c.step.in[0], Primitive::kMerge) ||
      c.graph.coordinate(c.step.in[0]).free != kNotFree)
    return false;
  return c.graph.producer(c.step.in[0])->out[1] == c.step.in[0];
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const std::size_t place = step_of(c.graph, c.step.in[0]);
  const Step& outer = c.graph.steps()[place];
  if (outer.size == c.step.size) return std::nullopt;
  Rebuild rebuild(c);
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    if (s != place) {
      rebuild.copy(s);
      continue;
    }
    const Step low = rebuild.add(Step::merge(rebuild.now(outer.in[0]), c.step.size));
    const Step high = rebuild.add(Step::merge(low.out[0], outer.size / c.step.size));
    rebuild.rename(outer.out[0], high.out[0]);
  }
  return rebuild.graph();
}

}  // namespace

const Rule kNestedMerges{
    .id = "R2b",
    .name = "nested-merges",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Merge of the remainder of a Merge is rejected. The form that merges by the small block first, and then
           merges the quotient, is kept.
Why:       A Merge by M and a Merge of the remainder by B give i div M, (i mod M) div B and i mod B. These are (i div
           B) div (M/B), (i div B) mod (M/B) and i mod B.
When:      No weight holds the remainder, and the remainder is not free (R4b and R5b order free pieces).
Soundness: exact
Status:    stable since 0.1
Example:   merge(i, s*k) then merge(i%(s*k), k) is rejected; merge(i, k) then merge(i/k, s) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
    .version = "ef8e423c",
};

}  // namespace syno
