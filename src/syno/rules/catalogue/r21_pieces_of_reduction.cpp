#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge && c.graph.reductions_only(c.step.in[0]);
}

}  // namespace

const Rule kPiecesOfReduction{
    .id = "R21",
    .name = "pieces-of-reduction",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      no Merge of what is made of Reduces alone
Why:       two Reduces say the same, held by the same weights; R4 and R6a refuse it where they cost no more budget, and
           this rule where they do, also behind Shifts and Splits
When:      always
Soundness: restriction: what one large Reduce and a Merge may say on a budget that two Reduces exceed is left out
Status:    unreleased, new after 0.1
Example:   reduce C_in; merge(r, s) is left out where s may be used once only)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kWholeReductions},
};

}  // namespace syno
