#include "syno/rules/catalogue.h"
#include "syno/rules/free_region.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge &&
         c.graph.coordinate(c.step.in[0]).free == kFreeReduction;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Graph refused = whole(c);
  return with_reduces(refused, free_region(refused, refused.steps().back().out[0]), c.guard);
}

std::optional<Graph> merged_rewrite(const RuleContext& c) {
  const Graph refused = whole(c);
  const FreeRegion region = free_region(refused, refused.steps().back().out[0]);
  if (has_ascending_merges(c.spec, refused, region)) return std::nullopt;
  return with_ascending_merges(c.spec, refused, region, c.guard);
}

}  // namespace

const Rule kMergeOfReduction{
    .id = "R4a",
    .name = "merge-of-reduction",
    .kind = RuleKind::kExact,
    .doc = R"(What:      a Merge of a Reduce, or of a free piece of one, is two Reduces
Why:       r div B and r mod B run over all pairs once; weights that hold r hold both
When:      two Reduces cost no more budget than one and the Merge, or no later step could charge
           what they cost; max_reductions leaves room. Reductions are a multiset and come before every other step:
           children are generated in that order.
Soundness: exact (E1)
Status:    stable since 0.1
Example:   reduce k*s; merge(r, s) is refused; reduce k, reduce s is kept)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
};

const Rule kMergeOrderOfReduction{
    .id = "R4b",
    .name = "merge-order-of-reduction",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      the free pieces of a Reduce are made by merging quotients with ascending blocks only
Why:       free pieces run over all their values independently, however they were made
When:      R4a does not fire, for want of budget
Soundness: exact (E1)
Status:    unreleased, new after 0.1
Example:   of merge(r:[C_in], s) and merge(r, s^-1*C_in) one is kept)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = merged_rewrite,
};

}  // namespace syno
