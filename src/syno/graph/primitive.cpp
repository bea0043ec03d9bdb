#include "syno/graph/primitive.h"

#include "syno/support/error.h"

namespace syno {

const PrimitiveInfo& primitive_info(Primitive primitive) {
  switch (primitive) {
    case Primitive::kSplit: return kSplitInfo;
    case Primitive::kMerge: return kMergeInfo;
    case Primitive::kShift: return kShiftInfo;
    case Primitive::kExpand: return kExpandInfo;
    case Primitive::kUnfold: return kUnfoldInfo;
    case Primitive::kStride: return kStrideInfo;
    case Primitive::kReduce: return kReduceInfo;
    case Primitive::kShare: return kShareInfo;
  }
  throw InternalError("primitive_info: not a primitive");
}

std::optional<Primitive> find_primitive(std::string_view name) {
  for (std::size_t i = 0; i < kPrimitiveCount; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    if (primitive_info(primitive).name == name) return primitive;
  }
  return std::nullopt;
}

std::string_view role_name(ShareRole role) {
  switch (role) {
    case ShareRole::kKeep: return "keep";
    case ShareRole::kDrop: return "drop";
    case ShareRole::kJoin: return "join";
  }
  throw InternalError("role_name: not a role");
}

Step Step::split(CoordinateId major, CoordinateId minor) {
  Step step;
  step.primitive = Primitive::kSplit;
  step.in = {major, minor};
  return step;
}

Step Step::merge(CoordinateId in, Size block) {
  Step step;
  step.primitive = Primitive::kMerge;
  step.in[0] = in;
  step.size = block;
  return step;
}

Step Step::shift(CoordinateId in, int amount) {
  Step step;
  step.primitive = Primitive::kShift;
  step.in[0] = in;
  step.amount = amount;
  return step;
}

Step Step::expand(CoordinateId in) {
  Step step;
  step.primitive = Primitive::kExpand;
  step.in[0] = in;
  return step;
}

Step Step::unfold(CoordinateId in, CoordinateId window, bool causal) {
  Step step;
  step.primitive = Primitive::kUnfold;
  step.in = {in, window};
  step.causal = causal;
  return step;
}

Step Step::stride(CoordinateId in, Size factor) {
  Step step;
  step.primitive = Primitive::kStride;
  step.in[0] = in;
  step.size = factor;
  return step;
}

Step Step::reduce(Size extent) {
  Step step;
  step.primitive = Primitive::kReduce;
  step.size = extent;
  return step;
}

Step Step::contract(SharedDims dims) {
  Step step;
  step.primitive = Primitive::kShare;
  step.dims = std::move(dims);
  return step;
}

}  // namespace syno
