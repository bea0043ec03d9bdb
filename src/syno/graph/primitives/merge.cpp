/// Merge(B): [i div B, i mod B] <- [i]     N is the extent of i
/// From the input: dimensions of sizes N/B and B become one of size N (a reshape).
/// Legal when B and N/B are legal sizes, so B divides N under every binding.   Cost: none.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kMergeInfo{
    .primitive = Primitive::kMerge,
    .name = "merge",
    .consumes = 1,
    .produces = 2,
    .doc = "[i div B, i mod B] <- [i]: joins dimensions of sizes N/B and B into one of size N",
    .extents = [](const Step& step, std::span<const Size> in) -> std::array<Size, 2> {
      return {in[0] / step.size, step.size};
    },
    .fits = [](const Step& /*step*/, std::span<const std::int64_t> in,
               std::int64_t size) { return size >= 1 && in[0] % size == 0; },
};

}  // namespace syno
