/// Expand: [] <- [i]     i of extent C has no influence on what is read
/// From the input: the data is repeated along a new dimension of size C.
/// Legal when the specification allows a repeat factor.   Cost: none (a stride of zero).
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kExpandInfo{
    .primitive = Primitive::kExpand,
    .name = "expand",
    .consumes = 1,
    .produces = 0,
    .doc = "[] <- [i]: repeats the data along a new dimension",
    .extents = [](const Step& /*step*/, std::span<const Size> /*in*/) -> std::array<Size, 2> {
      return {};
    },
    .fits = [](const Step& /*step*/, std::span<const std::int64_t> /*in*/,
               std::int64_t /*size*/) { return true; },
};

}  // namespace syno
