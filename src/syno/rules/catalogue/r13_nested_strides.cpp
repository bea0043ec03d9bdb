#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kStride &&
         is_unshared(c.graph, c.step.in[0], Primitive::kStride);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& below = *c.graph.producer(c.step.in[0]);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, below.out[0])});
  rebuild.add(Step::stride(rebuild.now(below.in[0]), below.size * c.step.size));
  return rebuild.graph();
}

}  // namespace

const Rule kNestedStrides{
    .id = "R13",
    .name = "nested-strides",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Stride of the result of a Stride is rejected. One Stride by the product is kept.
Why:       T*(S*i) is (T*S)*i.
When:      No weight holds the coordinate between the Strides.
Soundness: exact
Status:    unreleased, new after 0.1
Example:   stride(h, s) -> c; stride(c, k) is rejected; stride(h, k*s) is kept.)",
    .steps = {Primitive::kStride},
    .matches = matches,
    .rewrite = rewrite,
    .version = "31c4c8ee",
};

}  // namespace syno
