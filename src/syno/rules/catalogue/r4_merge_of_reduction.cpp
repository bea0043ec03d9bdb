#include "syno/rules/catalogue.h"
#include "syno/rules/free_region.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge &&
         c.graph.coordinate(c.step.in[0]).free == kFreeReduction;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Graph rejected = whole(c);
  return with_reduces(rejected, free_region(rejected, rejected.steps().back().out[0]), c.guard);
}

}  // namespace

const Rule kMergeOfReduction{
    .id = "R4a",
    .name = "merge-of-reduction",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Merge of a Reduce, or of a free piece of a Reduce, is rejected. Two Reduces are kept.
Why:       r div B and r mod B take every pair of values once. Weights that hold r hold both instead.
When:      Two Reduces cost no more budget than one Reduce and the Merge, or no later step could use the difference.
           max_reductions allows one more Reduce. The reductions of an operator are a multiset and precede all other
           steps, because children are generated in this order.
Soundness: exact (E1)
Status:    stable since 0.1
Example:   reduce k*s; merge(r, s) is rejected; reduce k, reduce s is kept.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
    .version = "dd4ab341",
};

const Rule kMergeOrderOfReduction{
    .id = "R4b",
    .name = "merge-order-of-reduction",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      The free pieces of a Reduce are made only by Merges of quotients with ascending blocks. Other orders of the
           blocks are rejected.
Why:       Free pieces take all their values independently of each other, no matter which steps made them.
When:      R4a does not apply because the budget is too small.
Soundness: exact (E1)
Status:    unreleased, new after 0.1
Example:   One of merge(r:[C_in], s) and merge(r, s^-1*C_in) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = ascending_merges_rewrite,
    .version = "038f0a97",
};

}  // namespace syno
