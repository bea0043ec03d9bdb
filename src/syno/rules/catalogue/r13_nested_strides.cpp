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
        R"(What:      a Stride of what a Stride made is one Stride by the product
Why:       T*(S*i) is (T*S)*i
When:      no weight holds what is between them
Soundness: exact
Status:    unreleased, new after 0.1
Example:   stride(h, s) -> c; stride(c, k) is refused; stride(h, k*s) is kept)",
    .steps = {Primitive::kStride},
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
