#include "syno/rules/catalogue.h"
#include "syno/rules/forms.h"

namespace syno {
namespace {

constexpr Forms kForms{.rejected =
                           "split b c -> t\n"
                           "split a t",
                       .kept =
                           "split a b -> u\n"
                           "split u c"};

}  // namespace

const Rule kNestedSplits{
    .id = "R2a",
    .name = "nested-splits",
    .kind = RuleKind::kExact,
    .doc = R"(What:      split(a, split(b, c)) is rejected. split(split(a, b), c) is kept.
Why:       |b|*|c|*a + (|c|*b + c) equals |c|*(|b|*a + b) + c.
When:      No weight holds the result of the inner Split.
Soundness: exact
Status:    stable since 0.1
Example:   split(o, split(q, r)) is rejected; split(split(o, q), r) is kept.)",
    .steps = {Primitive::kSplit},
    .matches = form_matches<kForms>,
    .rewrite = form_rewrite<kForms>,
    .version = "7439d612",
};

}  // namespace syno
