/// Shift(d): [(i + d) mod N] <- [i]     mod is non-negative, so d may be negative
/// From the input: a dimension of size N is cyclically shifted by d (a roll by -d).
/// Legal when the specification allows the amount d (1 unless it says otherwise).   Cost: a copy.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kShiftInfo{
    .primitive = Primitive::kShift,
    .name = "shift",
    .form = "shift OLD AMOUNT -> NEW",
    .doc = "[(i + d) mod N] <- [i]: shifts a dimension of size N cyclically by d",
    .kind = StepKind::kView,
    .consumes = 1,
    .produces = 1,
    .argument = Argument::kAmount,
    .relation = Relation::kOnto,
    .charge = Charge::kNothing,
    .limit = "max_shifts",
    .makes = {ExpressionKind::kCyclicShift, ExpressionKind::kIterator},
    .copies = true,
};

Step Step::shift(CoordinateId in, int amount) {
  Step step;
  step.primitive = Primitive::kShift;
  step.in[0] = in;
  step.amount = amount;
  return step;
}

}  // namespace syno
