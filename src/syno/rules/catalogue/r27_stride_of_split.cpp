#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kStride &&
         is_unshared(c.graph, c.step.in[0], Primitive::kSplit);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& split = *c.graph.producer(c.step.in[0]);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0])});
  const Step strided = rebuild.add(Step::stride(rebuild.now(split.in[1]), c.step.size));
  rebuild.add(Step::split(rebuild.now(split.in[0]), strided.out[0]));
  return rebuild.graph();
}

}  // namespace

const Rule kStrideOfSplit{
    .id = "R27",
    .name = "stride-of-split",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Stride of the result of a Split is rejected. A Split with a Stride of the minor part is kept.
Why:       S*(|j|*i + j) is (S*|j|)*i + S*j.
When:      No weight holds the result of the Split, and the minor part with the Stride has a legal size.
Soundness: exact
Status:    unreleased, new after 0.1
Example:   split(h, r:[k]) -> c; stride(c, s) is rejected; stride(r, s) -> u; split(h, u) is kept.)",
    .steps = {Primitive::kStride},
    .matches = matches,
    .rewrite = rewrite,
    .version = "1c3def06",
};

}  // namespace syno
