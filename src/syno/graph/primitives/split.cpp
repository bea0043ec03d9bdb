/// Split: [B*i + j] <- [i, j]     i is the block (extent G), j the place in it (extent B)
/// From the input: one dimension of size G*B becomes dimensions of sizes G and B (a reshape).
/// Legal when the product G*B is a legal size.   Cost: none.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kSplitInfo{
    .primitive = Primitive::kSplit,
    .name = "split",
    .consumes = 2,
    .produces = 1,
    .doc = "[B*i + j] <- [i, j]: partitions a dimension of size G*B into G blocks of B",
    .extents = [](const Step& /*step*/, std::span<const Size> in) -> std::array<Size, 2> {
      return {in[0] * in[1], Size()};
    },
    .fits = [](const Step& /*step*/, std::span<const std::int64_t> /*in*/,
               std::int64_t /*size*/) { return true; },
};

}  // namespace syno
