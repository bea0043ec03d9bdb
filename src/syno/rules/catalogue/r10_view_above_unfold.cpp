#include <cstdlib>

#include "syno/rules/catalogue.h"
#include "syno/rules/near.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// The Unfold that made `id`, if no weight holds that; null otherwise.
const Step* unfold_of(const RuleContext& c, CoordinateId id) {
  return is_unshared(c.graph, id, Primitive::kUnfold) ? c.graph.producer(id) : nullptr;
}

const Step* unfold_below_shift(const RuleContext& c) {
  return c.step.primitive == Primitive::kShift ? unfold_of(c, c.step.in[0]) : nullptr;
}
const Step* unfold_below_split(const RuleContext& c) {
  return c.step.primitive == Primitive::kSplit ? unfold_of(c, c.step.in[1]) : nullptr;
}
const Step* unfold_below_merge(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge ? unfold_of(c, c.step.in[0]) : nullptr;
}

std::int64_t window(const RuleContext& c, const Step& unfold, const Values& values) {
  return value_of(c.graph.extent(unfold.in[1]), values);
}

// Positions from which some place of the window, cyclically shifted or not, is beyond an end.
double shift_share(const RuleContext& c, const Values& values) {
  const Step& unfold = *unfold_below_shift(c);
  return hit_share(c.graph, unfold.in[0], window(c, unfold, values) - 1 + std::abs(c.step.amount),
                   value_of(c.graph.extent(unfold.in[0]), values), values);
}
// Positions of a block from which some place of the window is outside.
double split_share(const RuleContext& c, const Values& values) {
  const Step& unfold = *unfold_below_split(c);
  return hit_share(c.graph, unfold.in[0], window(c, unfold, values) - 1,
                   value_of(c.graph.extent(unfold.in[0]), values), values);
}
double merge_share(const RuleContext& c, const Values& values) {
  const Step& unfold = *unfold_below_merge(c);
  return hit_share(c.graph, unfold.in[0], window(c, unfold, values) - 1,
                   value_of(c.step.size, values), values);
}

bool shift_matches(const RuleContext& c) {
  return unfold_below_shift(c) != nullptr && is_near(c, shift_share);
}
bool split_matches(const RuleContext& c) {
  return unfold_below_split(c) != nullptr && is_near(c, split_share);
}
bool merge_matches(const RuleContext& c) {
  return unfold_below_merge(c) != nullptr && is_near(c, merge_share);
}

// Everything but the Unfold.
Rebuild without(const RuleContext& c, const Step& unfold) {
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, unfold.out[0])});
  return rebuild;
}

std::optional<Graph> shift_rewrite(const RuleContext& c) {
  const Step& unfold = *unfold_below_shift(c);
  Rebuild rebuild = without(c, unfold);
  const Step shifted = rebuild.add(Step::shift(rebuild.now(unfold.in[0]), c.step.amount));
  rebuild.add(Step::unfold(shifted.out[0], rebuild.now(unfold.in[1]), unfold.causal));
  return rebuild.graph();
}

std::optional<Graph> split_rewrite(const RuleContext& c) {
  const Step& unfold = *unfold_below_split(c);
  if (c.step.in[0] == unfold.in[0]) return std::nullopt;
  Rebuild rebuild = without(c, unfold);
  const Step split = rebuild.add(Step::split(rebuild.now(c.step.in[0]), rebuild.now(unfold.in[0])));
  rebuild.add(Step::unfold(split.out[0], rebuild.now(unfold.in[1]), unfold.causal));
  return rebuild.graph();
}

std::optional<Graph> merge_rewrite(const RuleContext& c) {
  const Step& unfold = *unfold_below_merge(c);
  Rebuild rebuild = without(c, unfold);
  const Step merged = rebuild.add(Step::merge(rebuild.now(unfold.in[0]), c.step.size));
  rebuild.add(Step::unfold(merged.out[1], rebuild.now(unfold.in[1]), unfold.causal));
  return rebuild.graph();
}

}  // namespace

const Rule kShiftAboveUnfold{
    .id = "R10a",
    .name = "shift-above-unfold",
    .kind = RuleKind::kApproximate,
    .doc =
        R"(What:      A Shift of the result of an Unfold is rejected. The form with the Shift below the Unfold is kept.
Why:       sh(i + j - K/2) and sh(i) + j - K/2 are equal wherever neither leaves the dimension or wraps around its
           end.
When:      No weight holds the result of the Unfold. At most half of the outputs of a layer may come from these ends,
           and at most 1 in 8 once primary sizes are large.
Soundness: approximate. For a window K and a Shift by d, K - 1 + d of the positions along a dimension of extent N
           differ (for K = 3 a tenth of 28, and 3 of 7). Lost is the choice of what is read at these positions: zeros
           or values from the other end.
Status:    unreleased, new after 0.1
Example:   unfold(h, r:[k]) -> c; shift(c, 1) is rejected; shift(h, 1) -> u; unfold(u, r) is kept.)",
    .steps = {Primitive::kShift},
    .matches = shift_matches,
    .rewrite = shift_rewrite,
    .share = shift_share,
    .version = "ae9e92f0",
};

const Rule kSplitAboveUnfold{
    .id = "R10b",
    .name = "split-above-unfold",
    .kind = RuleKind::kApproximate,
    .doc =
        R"(What:      A Split whose minor part is a window is rejected. The form with the Split below the Unfold is kept.
Why:       B*i + (j + k - K/2) is a window around B*i + j. They differ only at the ends of a block, where one reads
           zeros and the other reads the next block.
When:      No weight holds the result of the Unfold. At most half of the outputs of a layer may come from the ends of
           blocks, and at most 1 in 8 once primary sizes are large, so B is at least 8*(K - 1) or grows with the
           primary sizes.
Soundness: approximate. Of the positions in a block of B, K - 1 differ. Lost are windows that stop at the ends of
           blocks.
Status:    unreleased, new after 0.1
Example:   unfold(h, r:[k]) -> c; split(i, c) is rejected; split(i, h) -> t; unfold(t, r) is kept.)",
    .steps = {Primitive::kSplit},
    .matches = split_matches,
    .rewrite = split_rewrite,
    .share = split_share,
    .version = "7232901c",
};

const Rule kMergeAboveUnfold{
    .id = "R10c",
    .name = "merge-above-unfold",
    .kind = RuleKind::kApproximate,
    .doc =
        R"(What:      A Merge of a window by B is rejected. The form with the Merge below the Unfold, whose window slides within
           the block, is kept.
Why:       If K is much smaller than B, then at almost every position (i + j - K/2) div B is i div B, and (i + j -
           K/2) mod B is i mod B + j - K/2 (Figure 3c of the paper).
When:      No weight holds the result of the Unfold. At most half of the outputs of a layer may come from the ends of
           blocks, and at most 1 in 8 once primary sizes are large, so B is at least 8*(K - 1) or grows with the
           primary sizes.
Soundness: approximate. Of the positions in a block of B, K - 1 differ. Lost are windows that read across the ends of
           blocks.
Status:    unreleased, new after 0.1
Example:   unfold(h, r:[k]) -> c; merge(c, g) is rejected; merge(h, g) -> q, m; unfold(m, r) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = merge_matches,
    .rewrite = merge_rewrite,
    .share = merge_share,
    .version = "38ef263e",
};

}  // namespace syno
