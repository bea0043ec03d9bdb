/// Contract: [i] <- [i]     i becomes a dimension of a weight tensor and stays in the frontier, or leaves it
/// From the input: the data is multiplied element-wise with a weight; dropped coordinates are new dimensions of the data.
/// One shared coordinate is a Share of the paper. All Shares of one weight are one step, a contraction, and each has a
/// role: keep, drop or join.
/// Legal when the coordinates are different ones of the frontier.   Cost: one MAC for each term.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kContractInfo{
    .primitive = Primitive::kContract,
    .name = "contract",
    .form = "contract OLD:ROLE ... with role keep, drop or join",
    .doc =
        "[i, ...] <- [i, ...]: multiplies with a weight whose dimensions are the shared "
        "coordinates",
    .kind = StepKind::kContraction,
    .consumes = 0,
    .produces = 0,
    .argument = Argument::kRoles,
    .relation = Relation::kNone,
    .charge = Charge::kShares,
    .limit = "max_weights",
    .makes = {ExpressionKind::kIterator, ExpressionKind::kIterator},
};

Step Step::contract(SharedDims dims) {
  Step step;
  step.primitive = Primitive::kContract;
  step.dims = std::move(dims);
  return step;
}

}  // namespace syno
