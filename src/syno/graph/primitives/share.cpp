/// Share: [i] <- [i]     i becomes a dimension of a weight tensor and stays in the frontier, or leaves it
/// From the input: the data is multiplied element-wise with a weight; dropped coordinates are new dimensions of the data.
/// All Shares of one weight are one step, a contraction, and every shared coordinate has a role: keep, drop or join.
/// Legal when the coordinates are different ones of the frontier.   Cost: one multiply-add a term.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kShareInfo{
    .primitive = Primitive::kShare,
    .name = "contract",
    .consumes = 0,
    .produces = 0,
    .doc =
        "[i, ...] <- [i, ...]: multiplies with a weight whose dimensions are the shared "
        "coordinates",
    .extents = [](const Step& /*step*/, std::span<const Size> /*in*/) -> std::array<Size, 2> {
      return {};
    },
    .fits = [](const Step& /*step*/, std::span<const std::int64_t> /*in*/,
               std::int64_t /*size*/) { return true; },
};

}  // namespace syno
