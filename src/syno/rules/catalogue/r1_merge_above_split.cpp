#include "syno/graph/cut.h"
#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool above_split(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge &&
         is_unshared(c.graph, c.step.in[0], Primitive::kSplit);
}

// Free pieces are left alone: R4b orders them.
bool moves_below_split(const RuleContext& c) {
  return above_split(c) && c.graph.coordinate(c.step.in[0]).free == kNotFree;
}

bool undoes_split(const RuleContext& c) {
  return above_split(c) &&
         !parts_cut_again(c.graph, c.step.in[0], c.step.size, Held::kIsPart).empty();
}

bool goes_around(const RuleContext& c) {
  if (!above_split(c)) return false;
  CoordinateId minor = c.step.in[0];
  while (is_unshared(c.graph, minor, Primitive::kSplit)) minor = c.graph.producer(minor)->in[1];
  if (!c.graph.reductions_only(minor) || c.graph.reductions_only(c.step.in[0])) return false;
  const Size rest = c.step.size / c.graph.extent(minor);
  return c.spec.legal(rest) && c.spec.fit_suffices(c.spec.fit(rest));
}

bool another_weight(const RuleContext& c) {
  return c.graph.count(Primitive::kContract) < c.spec.limits().max_weights;
}

// Whether a contraction could take this coordinate out of the data. A Split's result never leaves (R8), so the rule
// must not turn a piece that could into one.
bool could_leave(const RuleContext& c, const Size& size) {
  if (!another_weight(c)) return false;
  for (std::size_t v = 0; v < c.spec.variables()->count(); ++v) {
    if (c.spec.variable(v).primary && size.power(v) > c.spec.variable(v).budget) return false;
  }
  return true;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& split = *c.graph.producer(c.step.in[0]);
  // One piece would be made of reductions alone, and then neither slides as a window (R9) nor leaves the data (R8).
  if (c.graph.reductions_only(split.in[0]) != c.graph.reductions_only(split.in[1]))
    return std::nullopt;
  // What follows from the parts of a Split is plainer to see than what follows from a Merge of it: another weight that
  // holds a piece could be absorbed (R16) by one that holds what the piece is made of.
  if (another_weight(c) &&
      (seen_by_weight(c.graph, split.in[0]) || seen_by_weight(c.graph, split.in[1])))
    return std::nullopt;
  const Size block = c.step.size;
  const Size minor = c.graph.extent(split.in[1]);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0])});
  const CoordinateId i = rebuild.now(split.in[0]);
  const CoordinateId j = rebuild.now(split.in[1]);
  const Specification& spec = c.spec;
  const Size quotient = c.graph.extent(c.step.in[0]) / block;
  if (!could_leave(c, quotient) && spec.legal(minor / block) &&
      spec.fit_suffices(spec.fit(minor / block))) {
    const Step merged = rebuild.add(Step::merge(j, block));
    rebuild.add(Step::split(i, merged.out[0]));
    return rebuild.graph();
  }
  if (!could_leave(c, block) && spec.legal(block / minor) &&
      spec.fit_suffices(spec.fit(block / minor)) && c.graph.extent(split.in[0]) != block / minor) {
    const Step merged = rebuild.add(Step::merge(i, block / minor));
    rebuild.add(Step::split(merged.out[1], j));
    return rebuild.graph();
  }
  return std::nullopt;
}

}  // namespace

const Rule kMergeUndoesSplit{
    .id = "R1a",
    .name = "merge-undoes-split",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      a Merge by B of nested Splits whose last parts have the product B gives the parts back
Why:       (B*i + j) div B is i and (B*i + j) mod B is j: wasted steps
When:      no weight holds what the Splits make
Soundness: restriction: the same coordinates without the detour; what only the detour allows, such as dropping a
           Reduce that no weight holds or that is too large to be joined, is left out on purpose
Status:    stable since 0.1
Example:   merge(split(i, j), B) with |j| = B is i, j)",
    .steps = {Primitive::kMerge},
    .matches = undoes_split,
    .rewrite = nullptr,
};

const Rule kMergeAroundReduction{
    .id = "R1c",
    .name = "merge-around-reduction",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      a Merge by b*B of nested Splits whose last part, of size B, is made of Reduces goes below that Split
Why:       (B*i + r) div b*B is i div b, and the rest is B*(i mod b) + r: a Merge by b and a Split say the same
When:      no weight holds what the Splits make; b is a size of its own
Soundness: restriction: the same coordinates in as many steps; what only the detour allows, such as dropping a Reduce that
           is too large to be joined inside a Merge's result, is left out on purpose
Status:    unreleased, new after 0.1
Example:   split(h, r:[k]) -> c; merge(c, s*k) is left out; merge(h, s) -> q, m; split(m, r) is not)",
    .steps = {Primitive::kMerge},
    .matches = goes_around,
    .rewrite = nullptr,
};

const Rule kMergeAboveSplit{
    .id = "R1b",
    .name = "merge-above-split",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Merge of what a Split made, when one block divides the other: the Split moves above the Merge
Why:       with B*i+j, j < B: merging by a divisor b of B gives (B/b*i + j/b, j%b);
           by a multiple b*B it gives (i/b, B*(i%b)+j)
When:      no weight holds the Split's result; B and the merge block divide one another under every binding; no piece
           becomes a Split's result that could leave the data as a Merge's result; no piece becomes one that is made
           of reductions alone, which other rules restrict; it is not free (R3b, R4); no weight holds what a part is made of while another
           weight can follow
Soundness: exact
Status:    stable since 0.1
Example:   merge(split(i, j:[k*s]), s) is refused; merge(j, s) -> q, m; split(i, q) is kept)",
    .steps = {Primitive::kMerge},
    .matches = moves_below_split,
    .rewrite = rewrite,
};

}  // namespace syno
