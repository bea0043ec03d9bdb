/// Shift(d): [(i + d) mod N] <- [i]     mod is non-negative, so d may be negative
/// From the input: a dimension of size N is rotated by d (a roll by -d).
/// Legal when the specification allows the amount d (1 unless it says otherwise).   Cost: a copy.
#include "syno/graph/primitive.h"

namespace syno {

const PrimitiveInfo kShiftInfo{
    .primitive = Primitive::kShift,
    .name = "shift",
    .consumes = 1,
    .produces = 1,
    .doc = "[(i + d) mod N] <- [i]: rotates a dimension of size N cyclically by d",
    .extents = [](const Step& /*step*/, std::span<const Size> in) -> std::array<Size, 2> {
      return {in[0], Size()};
    },
    .fits = [](const Step& /*step*/, std::span<const std::int64_t> /*in*/,
               std::int64_t /*size*/) { return true; },
};

}  // namespace syno
