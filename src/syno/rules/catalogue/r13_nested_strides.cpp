#include "syno/rules/catalogue.h"
#include "syno/rules/forms.h"

namespace syno {
namespace {

constexpr Forms kForms{.rejected =
                           "stride h S -> t\n"
                           "stride t T",
                       .kept = "stride h S*T"};

}  // namespace

const Rule kNestedStrides{
    .id = "R13",
    .name = "nested-strides",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Stride of the result of a Stride is rejected. One Stride by the product is kept.
Why:       T*(S*i) is (T*S)*i.
When:      No weight holds the coordinate between the Strides.
Soundness: exact
Status:    unreleased, new after 0.1
Example:   stride(h, s) -> c; stride(c, k) is rejected; stride(h, k*s) is kept.)",
    .steps = {Primitive::kStride},
    .matches = form_matches<kForms>,
    .rewrite = form_rewrite<kForms>,
    .version = "31c4c8ee",
};

}  // namespace syno
