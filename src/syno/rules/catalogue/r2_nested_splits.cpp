#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kSplit &&
         is_unshared(c.graph, c.step.in[1], Primitive::kSplit);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& inner = *c.graph.producer(c.step.in[1]);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[1])});
  const Step left = rebuild.add(Step::split(rebuild.now(c.step.in[0]), rebuild.now(inner.in[0])));
  rebuild.add(Step::split(left.out[0], rebuild.now(inner.in[1])));
  return rebuild.graph();
}

}  // namespace

const Rule kNestedSplits{
    .id = "R2a",
    .name = "nested-splits",
    .kind = RuleKind::kExact,
    .doc = R"(What:      split(a, split(b, c)) is rejected. split(split(a, b), c) is kept.
Why:       |b|*|c|*a + (|c|*b + c) equals |c|*(|b|*a + b) + c.
When:      No weight holds the result of the inner Split.
Soundness: exact
Status:    stable since 0.1
Example:   split(o, split(q, r)) is rejected; split(split(o, q), r) is kept.)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
    .version = "7439d612",
};

}  // namespace syno
