/// Merge(B): [i div B, i mod B] <- [i]     N is the extent of i
/// From the input: dimensions of sizes N/B and B become one of size N (a reshape).
/// Legal when B and N/B are legal sizes, so B divides N under every binding.   Cost: none.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kMergeInfo{
    .primitive = Primitive::kMerge,
    .name = "merge",
    .form = "merge OLD BLOCK -> QUOTIENT REMAINDER",
    .doc = "[i div B, i mod B] <- [i]: joins dimensions of sizes N/B and B into one of size N",
    .kind = StepKind::kView,
    .consumes = 1,
    .produces = 2,
    .argument = Argument::kBlock,
    .relation = Relation::kOnto,
    .charge = Charge::kMadeUp,
    .limit = "max_merges",
    .makes = {ExpressionKind::kQuotient, ExpressionKind::kRemainder},
};

Step Step::merge(CoordinateId in, Size block) {
  Step step;
  step.primitive = Primitive::kMerge;
  step.in[0] = in;
  step.size = block;
  return step;
}

}  // namespace syno
