/// Stride(S): [S*i] <- [i]     i has the extent K
/// From the input: every S-th element of a dimension of size S*K is kept.
/// Legal when S*K is a legal size.   Cost: a copy.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kStrideInfo{
    .primitive = Primitive::kStride,
    .name = "stride",
    .form = "stride OLD FACTOR -> NEW",
    .doc = "[S*i] <- [i]: takes every S-th element of a dimension of size S*K",
    .kind = StepKind::kView,
    .consumes = 1,
    .produces = 1,
    .argument = Argument::kFactor,
    .relation = Relation::kOneToOne,
    .charge = Charge::kSize,
    .limit = "max_strides",
    .makes = {ExpressionKind::kScaled, ExpressionKind::kIterator},
};

Step Step::stride(CoordinateId in, Size factor) {
  Step step;
  step.primitive = Primitive::kStride;
  step.in[0] = in;
  step.size = factor;
  return step;
}

}  // namespace syno
