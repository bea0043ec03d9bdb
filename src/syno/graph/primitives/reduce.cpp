/// Reduce(n): [r] <- []     r runs over 0..n-1 and is summed
/// From the input: a dimension of size n is summed.
/// Legal when n is a legal size.   Cost: one addition a term, or none where a contraction sums it.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kReduceInfo{
    .primitive = Primitive::kReduce,
    .name = "reduce",
    .consumes = 0,
    .produces = 1,
    .doc = "[r] <- []: sums over a new coordinate of size n",
    .extents = [](const Step& step, std::span<const Size> /*in*/) -> std::array<Size, 2> {
      return {step.size, Size()};
    },
    .fits = [](const Step& /*step*/, std::span<const std::int64_t> /*in*/,
               std::int64_t size) { return size >= 1; },
};

}  // namespace syno
