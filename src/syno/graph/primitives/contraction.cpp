/// Contraction: [i, ..] <- [i, ..]     each i becomes a dimension of one weight and stays in the frontier, or leaves it
/// From the input: the data is multiplied element-wise with a weight; dropped coordinates are new dimensions of the data.
/// Each coordinate that the weight takes (a Share of the paper) has a role: keep, drop or join.
/// Legal when the coordinates are different ones of the frontier.   Cost: one MAC for each term.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kContractionInfo{
    .primitive = Primitive::kContraction,
    .name = "contract",
    .form = "contract OLD:ROLE ... with role keep, drop or join",
    .doc = "[i, ...] <- [i, ...]: multiplies with a weight whose dimensions are these coordinates",
    .kind = StepKind::kContraction,
    .consumes = 0,
    .produces = 0,
    .argument = Argument::kRoles,
    .relation = Relation::kNone,
    .charge = Charge::kWeightDims,
    .limit = "max_weights",
    .makes = {ExpressionKind::kIterator, ExpressionKind::kIterator},
};

Step Step::contract(WeightDims dims) {
  Step step;
  step.primitive = Primitive::kContraction;
  step.dims = std::move(dims);
  return step;
}

}  // namespace syno
