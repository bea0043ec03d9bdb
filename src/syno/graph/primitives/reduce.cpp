/// Reduce(n): [r] <- []     r runs over 0..n-1 and is summed
/// From the input: a dimension of size n is summed.
/// Legal when n is a legal size.   Cost: one addition a term, or none where a contraction sums it.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kReduceInfo{
    .primitive = Primitive::kReduce,
    .name = "reduce",
    .form = "reduce SIZE -> NEW",
    .doc = "[r] <- []: sums over a new coordinate of size n",
    .kind = StepKind::kReduction,
    .consumes = 0,
    .produces = 1,
    .argument = Argument::kExtent,
    .relation = Relation::kNone,
    .charge = Charge::kSize,
    .limit = "max_reductions",
    .makes = {ExpressionKind::kReduction, ExpressionKind::kIterator},
};

Step Step::reduce(Size extent) {
  Step step;
  step.primitive = Primitive::kReduce;
  step.size = extent;
  return step;
}

}  // namespace syno
