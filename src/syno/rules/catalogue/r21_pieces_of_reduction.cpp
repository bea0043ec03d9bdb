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
        R"(What:      A Merge of a coordinate that consists of Reduces alone is left out.
Why:       Two Reduces that the same weights hold express the same. R4 and R6a reject the Merge where the two Reduces
           cost no more budget. This rule rejects it where they cost more, and also above Shifts and Splits.
When:      Always.
Soundness: restriction. Operators that one large Reduce and a Merge can express within a budget that two Reduces
           exceed are outside the space.
Status:    unreleased, new after 0.1
Example:   reduce C_in; merge(r, s) is left out if s may be used only once.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kWholeReductions},
    .version = "0e873aa1",
};

}  // namespace syno
