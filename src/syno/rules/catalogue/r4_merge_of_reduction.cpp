#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge &&
         is_unshared(c.graph, c.step.in[0], Primitive::kReduce);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  Rebuild rebuild(c);
  rebuild.add(Step::reduce(c.graph.extent(c.step.in[0]) / c.step.size));
  rebuild.add(Step::reduce(c.step.size));
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0])});
  return rebuild.graph();
}

}  // namespace

const Rule kMergeOfReduction{
    .id = "R4",
    .name = "merge-of-reduction",
    .kind = RuleKind::kExact,
    .doc = R"(What:      a Merge of a Reduce that no weight holds is two Reduces
Why:       r div B and r mod B run over all pairs once
When:      two Reduces cost no more budget than one and the Merge, and max_reductions leaves room. Reductions are a
           multiset and come before every other step: children are generated in that order.
Soundness: exact
Status:    stable since 0.1
Example:   reduce k*s; merge(r, s) is refused; reduce k, reduce s is kept)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
