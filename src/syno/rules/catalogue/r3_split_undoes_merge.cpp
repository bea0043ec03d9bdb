#include "syno/rules/catalogue.h"
#include "syno/rules/forms.h"

namespace syno {
namespace {

constexpr Forms kForms{.rejected =
                           "merge h B -> q m\n"
                           "split q m",
                       .kept = ""};

}  // namespace

const Rule kSplitUndoesMerge{
    .id = "R3a",
    .name = "split-undoes-merge",
    .kind = RuleKind::kExact,
    .doc = R"(What:      split(i div B, i mod B) is rejected. The coordinate i is kept.
Why:       (i div B)*B + i mod B equals i, so the two steps have no effect.
When:      No weight holds one of the pieces.
Soundness: exact
Status:    stable since 0.1
Example:   merge(h, s) -> q, m; split(q, m) is rejected; h is kept.)",
    .steps = {Primitive::kSplit},
    .matches = form_matches<kForms>,
    .rewrite = form_rewrite<kForms>,
    .drops_steps = true,
    .version = "3d778ab0",
};

}  // namespace syno
