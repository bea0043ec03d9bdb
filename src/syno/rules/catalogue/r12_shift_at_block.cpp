#include <cstdlib>

#include "syno/rules/catalogue.h"
#include "syno/rules/forms.h"
#include "syno/rules/near.h"

namespace syno {
namespace {

constexpr Forms kSplit{.rejected =
                           "split h r -> t\n"
                           "shift t D",
                       .kept =
                           "shift r D -> u\n"
                           "split h u"};
constexpr Forms kMerge{.rejected =
                           "shift h D -> t\n"
                           "merge t B",
                       .kept =
                           "merge h B -> q m\n"
                           "shift m D"};

// Positions of a block that a cyclic shift takes into the next one.
double split_share(const RuleContext& c, const Values& values) {
  const CoordinateId minor = form_below<kSplit>(c)->in[1];
  return hit_share(c.graph, minor, std::abs(c.step.amount), value_of(c.graph.extent(minor), values),
                   values);
}
double merge_share(const RuleContext& c, const Values& values) {
  const Step& shift = *form_below<kMerge>(c);
  return hit_share(c.graph, shift.in[0], std::abs(shift.amount), value_of(c.step.size, values),
                   values);
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
    .matches = near_form_matches<kSplit, split_share>,
    .rewrite = form_rewrite<kSplit>,
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
    .matches = near_form_matches<kMerge, merge_share>,
    .rewrite = form_rewrite<kMerge>,
    .share = merge_share,
    .version = "34c008ac",
};

}  // namespace syno
