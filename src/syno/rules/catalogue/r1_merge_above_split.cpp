#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge &&
         is_unshared(c.graph, c.step.in[0], Primitive::kSplit);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& split = *c.graph.producer(c.step.in[0]);
  const Size block = c.step.size;
  const Size minor = c.graph.extent(split.in[1]);
  Rebuild rebuild(c.graph);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0])});
  const CoordinateId i = rebuild.now(split.in[0]);
  const CoordinateId j = rebuild.now(split.in[1]);
  if (block == minor) return rebuild.graph();
  const Specification& spec = c.spec;
  if (spec.legal(minor / block) && spec.fit_suffices(spec.fit(minor / block))) {
    const Step merged = rebuild.add(Step::merge(j, block));
    rebuild.add(Step::split(i, merged.out[0]));
    return rebuild.graph();
  }
  if (spec.legal(block / minor) && spec.fit_suffices(spec.fit(block / minor)) &&
      c.graph.extent(split.in[0]) != block / minor) {
    const Step merged = rebuild.add(Step::merge(i, block / minor));
    rebuild.add(Step::split(merged.out[1], j));
    return rebuild.graph();
  }
  return std::nullopt;
}

}  // namespace

const Rule kMergeAboveSplit{
    .id = "R1",
    .name = "merge-above-split",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Merge of what a Split made, when one block divides the other: the Split moves above the Merge
Why:       with B*i+j, j < B: merging by B gives (i, j); by a divisor b of B it gives (B/b*i + j/b, j%b);
           by a multiple b*B it gives (i/b, B*(i%b)+j)
When:      no weight holds the Split's result; B and the merge block divide one another under every binding
Soundness: exact
Status:    stable since 0.1
Example:   merge(split(i, j), B) with |j| = B is i, j)",
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
