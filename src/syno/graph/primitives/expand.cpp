/// Expand: [] <- [i]     i of extent C has no influence on what is read
/// From the input: the data is repeated along a new dimension of size C.
/// Legal when the specification allows a repeat factor.   Cost: none (a stride of zero).
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kExpandInfo{
    .primitive = Primitive::kExpand,
    .name = "expand",
    .form = "expand OLD",
    .doc = "[] <- [i]: repeats the data along a new dimension",
    .kind = StepKind::kRepetition,
    .consumes = 1,
    .produces = 0,
    .argument = Argument::kNone,
    .relation = Relation::kNone,
    .charge = Charge::kNothing,
    .limit = "max_repeat",
    .makes = {ExpressionKind::kIterator, ExpressionKind::kIterator},
};

Step Step::expand(CoordinateId in) {
  Step step;
  step.primitive = Primitive::kExpand;
  step.in[0] = in;
  return step;
}

}  // namespace syno
