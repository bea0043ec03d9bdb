#include <cstdlib>

#include "syno/rules/catalogue.h"
#include "syno/rules/near.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

const Step* split_below(const RuleContext& c) {
  return c.step.primitive == Primitive::kShift &&
                 is_unshared(c.graph, c.step.in[0], Primitive::kSplit)
             ? c.graph.producer(c.step.in[0])
             : nullptr;
}
const Step* shift_below(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge &&
                 is_unshared(c.graph, c.step.in[0], Primitive::kShift)
             ? c.graph.producer(c.step.in[0])
             : nullptr;
}

// Positions of a block that a cyclic shift takes into the next one.
double split_share(const RuleContext& c, const Values& values) {
  const CoordinateId minor = split_below(c)->in[1];
  return hit_share(c.graph, minor, std::abs(c.step.amount), value_of(c.graph.extent(minor), values),
                   values);
}
double merge_share(const RuleContext& c, const Values& values) {
  const Step& shift = *shift_below(c);
  return hit_share(c.graph, shift.in[0], std::abs(shift.amount), value_of(c.step.size, values),
                   values);
}

bool split_matches(const RuleContext& c) {
  return split_below(c) != nullptr && is_near(c, split_share);
}
bool merge_matches(const RuleContext& c) {
  return shift_below(c) != nullptr && is_near(c, merge_share);
}

std::optional<Graph> split_rewrite(const RuleContext& c) {
  const Step& split = *split_below(c);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, split.out[0])});
  const Step shifted = rebuild.add(Step::shift(rebuild.now(split.in[1]), c.step.amount));
  rebuild.add(Step::split(rebuild.now(split.in[0]), shifted.out[0]));
  return rebuild.graph();
}

std::optional<Graph> merge_rewrite(const RuleContext& c) {
  const Step& shift = *shift_below(c);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, shift.out[0])});
  const Step merged = rebuild.add(Step::merge(rebuild.now(shift.in[0]), c.step.size));
  rebuild.add(Step::shift(merged.out[1], shift.amount));
  return rebuild.graph();
}

}  // namespace

const Rule kShiftAboveSplit{
    .id = "R12a",
    .name = "shift-above-split",
    .kind = RuleKind::kApproximate,
    .doc =
        R"(What:      A Shift of the result of a Split with a large block is rejected. The form with a Shift of the minor part is
           kept.
Why:       B*i + j + d is B*i + (j + d) unless j + d leaves the block, which happens for d of the B values of j.
When:      No weight holds the result of the Split. At most half of the outputs of a layer may come from these values,
           and at most 1 in 8 once primary sizes are large, so B is at least 8*d or grows with the primary sizes.
Soundness: approximate. Of the positions in a block of B, d differ. Lost are cyclic shifts that continue into the next
           block.
Status:    unreleased, new after 0.1
Example:   split(i, h) -> t; shift(t, 1) is rejected; shift(h, 1) -> u; split(i, u) is kept; with a block of s=2 both
           are kept.)",
    .steps = {Primitive::kShift},
    .matches = split_matches,
    .rewrite = split_rewrite,
    .share = split_share,
    .version = "af38ab24",
};

const Rule kMergeAboveShift{
    .id = "R12b",
    .name = "merge-above-shift",
    .kind = RuleKind::kApproximate,
    .doc =
        R"(What:      A Merge of the result of a Shift by a large block is rejected. The form with the Merge below, and a Shift
           of the remainder, is kept.
Why:       (i + d) div B is i div B, and (i + d) mod B is (i mod B + d) mod B, unless i + d leaves the block, which
           happens for d of the B values.
When:      No weight holds the result of the Shift. At most half of the outputs of a layer may come from these values,
           and at most 1 in 8 once primary sizes are large, so B is at least 8*d or grows with the primary sizes.
Soundness: approximate. Of the positions in a block of B, d differ. Lost are cyclic shifts that continue into the next
           block.
Status:    unreleased, new after 0.1
Example:   shift(h, 1) -> u; merge(u, g) is rejected; merge(h, g) -> q, m; shift(m, 1) is kept; with a block of s=2
           both are kept.)",
    .steps = {Primitive::kMerge},
    .matches = merge_matches,
    .rewrite = merge_rewrite,
    .share = merge_share,
    .version = "34c008ac",
};

}  // namespace syno
