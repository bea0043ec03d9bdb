/// Stride(S): [S*i] <- [i]     i has the extent K
/// From the input: every S-th element of a dimension of size S*K is kept.
/// Legal when S*K is a legal size.   Cost: a copy.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kStrideInfo{
    .primitive = Primitive::kStride,
    .name = "stride",
    .consumes = 1,
    .produces = 1,
    .doc = "[S*i] <- [i]: takes every S-th element of a dimension of size S*K",
    .extents = [](const Step& step, std::span<const Size> in) -> std::array<Size, 2> {
      return {in[0] * step.size, Size()};
    },
    .fits = [](const Step& /*step*/, std::span<const std::int64_t> /*in*/,
               std::int64_t size) { return size >= 1; },
};

}  // namespace syno
