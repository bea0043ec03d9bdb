#include "syno/rules/catalogue.h"
#include "syno/rules/forms.h"

namespace syno {
namespace {

constexpr Forms kForms{.rejected =
                           "split h r -> t\n"
                           "stride t S",
                       .kept =
                           "stride r S -> u\n"
                           "split h u"};

}  // namespace

const Rule kStrideOfSplit{
    .id = "R27",
    .name = "stride-of-split",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Stride of the result of a Split is rejected. A Split with a Stride of the minor part is kept.
Why:       S*(|j|*i + j) is (S*|j|)*i + S*j.
When:      No weight holds the result of the Split, and the minor part with the Stride has a legal size.
Soundness: exact
Status:    unreleased, new after 0.1
Example:   split(h, r:[k]) -> c; stride(c, s) is rejected; stride(r, s) -> u; split(h, u) is kept.)",
    .steps = {Primitive::kStride},
    .matches = form_matches<kForms>,
    .rewrite = form_rewrite<kForms>,
    .version = "1c3def06",
};

}  // namespace syno
