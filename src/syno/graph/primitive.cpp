#include "syno/graph/primitive.h"

#include "syno/support/error.h"

namespace syno {

const std::array<const PrimitiveInfo*, kPrimitiveCount> detail::kPrimitives{
    &kSplitInfo,  &kMergeInfo,  &kShiftInfo,  &kExpandInfo,
    &kUnfoldInfo, &kStrideInfo, &kReduceInfo, &kContractionInfo};

std::optional<Primitive> find_primitive(std::string_view name) {
  for (std::size_t i = 0; i < kPrimitiveCount; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    if (primitive_info(primitive).name == name) return primitive;
  }
  return std::nullopt;
}

std::string_view role_name(WeightRole role) {
  switch (role) {
    case WeightRole::kKeep: return "keep";
    case WeightRole::kDrop: return "drop";
    case WeightRole::kJoin: return "join";
  }
  throw InternalError("role_name: not a role");
}

bool size_fits(const PrimitiveInfo& info, std::int64_t in, std::int64_t size) {
  if (!takes_size(info.argument)) return true;
  return size >= 1 && (info.argument != Argument::kBlock || in % size == 0);
}

}  // namespace syno
