/// Split: [B*i + j] <- [i, j]     i is the block (extent G), j the place in it (extent B)
/// From the input: one dimension of size G*B becomes dimensions of sizes G and B (a reshape).
/// Legal when the product G*B is a legal size.   Cost: none.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kSplitInfo{
    .primitive = Primitive::kSplit,
    .name = "split",
    .form = "split MAJOR MINOR -> NEW",
    .doc = "[B*i + j] <- [i, j]: partitions a dimension of size G*B into G blocks of B",
    .kind = StepKind::kView,
    .consumes = 2,
    .produces = 1,
    .argument = Argument::kNone,
    .relation = Relation::kOnto,
    .charge = Charge::kNothing,
    .limit = "max_splits",
    .makes = {ExpressionKind::kMixed, ExpressionKind::kIterator},
};

Step Step::split(CoordinateId major, CoordinateId minor) {
  Step step;
  step.primitive = Primitive::kSplit;
  step.in = {major, minor};
  return step;
}

}  // namespace syno
