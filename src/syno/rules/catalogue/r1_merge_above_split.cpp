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
  return c.graph.count(Primitive::kContraction) < c.spec.limits().max_weights;
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
        R"(What:      A Merge by B of nested Splits whose last parts have the product B returns these parts.
Why:       (B*i + j) div B is i, and (B*i + j) mod B is j. The two steps have no effect.
When:      No weight holds a result of the Splits.
Soundness: restriction. The same coordinates are reachable without the two steps. Operators that only these steps
           allow are outside the space, for example operators that drop a Reduce that no weight holds, or one that is
           too large to be joined.
Status:    stable since 0.1
Example:   merge(split(i, j), B) with |j| = B is i, j.)",
    .steps = {Primitive::kMerge},
    .matches = undoes_split,
    .rewrite = nullptr,
    .version = "d87fb893",
};

const Rule kMergeAroundReduction{
    .id = "R1c",
    .name = "merge-around-reduction",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      A Merge by b*B of nested Splits is left out if their last part has size B and consists of Reduces. The
           Merge can be moved below this Split.
Why:       (B*i + r) div (b*B) is i div b, and the remainder is B*(i mod b) + r. A Merge by b and a Split express the
           same.
When:      No weight holds a result of the Splits, and b is a legal size.
Soundness: restriction. The same coordinates are reachable with the same number of steps. Operators that only the
           rejected form allows are outside the space, for example operators that drop a Reduce that is too large to
           be joined within a result of the Merge.
Status:    unreleased, new after 0.1
Example:   split(h, r:[k]) -> c; merge(c, s*k) is left out; merge(h, s) -> q, m; split(m, r) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = goes_around,
    .rewrite = nullptr,
    .version = "e13f2925",
};

const Rule kMergeAboveSplit{
    .id = "R1b",
    .name = "merge-above-split",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Merge of the result of a Split is rejected if one block divides the other. The form with the Split above
           the Merge is kept.
Why:       Consider B*i + j with j < B. A Merge by a divisor b of B returns (B/b*i + j div b, j mod b). A Merge by a
           multiple b*B returns (i div b, B*(i mod b) + j).
When:      No weight holds the result of the Split. B and the block of the Merge divide one another under every
           binding. No piece turns from a result of a Merge that could leave the data into a result of a Split. No
           piece turns into one that consists of reductions alone, which other rules restrict. The Merge is not free
           (R3b and R4 apply to free pieces). If a weight holds a coordinate that a part is made of, no other weight
           can follow.
Soundness: exact
Status:    stable since 0.1
Example:   merge(split(i, j:[k*s]), s) is rejected; merge(j, s) -> q, m; split(i, q) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = moves_below_split,
    .rewrite = rewrite,
    .version = "689d9c56",
};

}  // namespace syno
