/// Unfold: [i + j - K div 2] <- [i, j]     a window of size K around i; outside 0..N-1 the term is zero
/// Unfold(causal): [i + j - (K-1)] <- [i, j]     the window ends at i; pads K-1 before and nothing after
/// From the input: one dimension of size N becomes dimensions of sizes N and K.
/// Even windows pad K div 2 before and K-1 - K div 2 after. Legal when K is odd (unless the specification allows even
/// ones) and K <= N / min_unfold_ratio under every binding.   Cost: elements times K when materialised.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kUnfoldInfo{
    .primitive = Primitive::kUnfold,
    .name = "unfold",
    .form = "unfold OLD WINDOW [causal] -> NEW",
    .doc = "[i + j - K div 2] <- [i, j]: windows of size K around i; outside reads zero",
    .kind = StepKind::kView,
    .consumes = 2,
    .produces = 1,
    .argument = Argument::kCausal,
    .relation = Relation::kSum,
    .charge = Charge::kNothing,
    .limit = "max_unfolds",
    .makes = {ExpressionKind::kWindow, ExpressionKind::kIterator},
    .copies = true,
};

Step Step::unfold(CoordinateId in, CoordinateId window, bool causal) {
  Step step;
  step.primitive = Primitive::kUnfold;
  step.in = {in, window};
  step.causal = causal;
  return step;
}

}  // namespace syno
