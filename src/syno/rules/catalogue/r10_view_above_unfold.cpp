#include <cstdlib>

#include "syno/rules/catalogue.h"
#include "syno/rules/forms.h"
#include "syno/rules/near.h"

namespace syno {
namespace {

constexpr Forms kShift{.rejected =
                           "unfold h r -> t\n"
                           "shift t D",
                       .kept =
                           "shift h D -> u\n"
                           "unfold u r"};
constexpr Forms kSplit{.rejected =
                           "unfold h r -> t\n"
                           "split i t",
                       .kept =
                           "split i h -> u\n"
                           "unfold u r"};
constexpr Forms kMerge{.rejected =
                           "unfold h r -> t\n"
                           "merge t B",
                       .kept =
                           "merge h B -> q m\n"
                           "unfold m r"};

std::int64_t window(const RuleContext& c, const Step& unfold, const Values& values) {
  return value_of(c.graph.extent(unfold.in[1]), values);
}

// Positions from which some place of the window, cyclically shifted or not, is beyond an end.
double shift_share(const RuleContext& c, const Values& values) {
  const Step& unfold = *form_below<kShift>(c);
  return hit_share(c.graph, unfold.in[0], window(c, unfold, values) - 1 + std::abs(c.step.amount),
                   value_of(c.graph.extent(unfold.in[0]), values), values);
}
// Positions of a block from which some place of the window is outside.
double split_share(const RuleContext& c, const Values& values) {
  const Step& unfold = *form_below<kSplit>(c);
  return hit_share(c.graph, unfold.in[0], window(c, unfold, values) - 1,
                   value_of(c.graph.extent(unfold.in[0]), values), values);
}
double merge_share(const RuleContext& c, const Values& values) {
  const Step& unfold = *form_below<kMerge>(c);
  return hit_share(c.graph, unfold.in[0], window(c, unfold, values) - 1,
                   value_of(c.step.size, values), values);
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
    .matches = near_form_matches<kShift, shift_share>,
    .rewrite = form_rewrite<kShift>,
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
    .matches = near_form_matches<kSplit, split_share>,
    .rewrite = form_rewrite<kSplit>,
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
    .matches = near_form_matches<kMerge, merge_share>,
    .rewrite = form_rewrite<kMerge>,
    .share = merge_share,
    .version = "38ef263e",
};

}  // namespace syno
