// The eight primitives as data. Each has a file of its own in primitives/, with its meaning, and one PrimitiveInfo that
// says what it consumes and produces. Graphs are built from the output to the input: "below" is nearer the output.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syno/sizes/size.h"
#include "syno/support/inline_vector.h"

namespace syno {

enum class Primitive : std::uint8_t {
  kSplit,
  kMerge,
  kShift,
  kExpand,
  kUnfold,
  kStride,
  kReduce,
  kShare
};
inline constexpr std::size_t kPrimitiveCount = 8;

/// Index of a coordinate in Graph::coordinates().
using CoordinateId = std::int16_t;
inline constexpr CoordinateId kNoCoordinate = -1;

/// What happens to a coordinate that a weight shares.
enum class ShareRole : std::uint8_t {
  kKeep,  ///< goes into the weight and stays in the data frontier
  kDrop,  ///< goes into the weight and leaves the frontier; no earlier weight holds it (an outer index)
  kJoin,  ///< goes into the weight and leaves the frontier; an earlier weight holds it too (an index only weights share)
};
std::string_view role_name(ShareRole role);

struct SharedDim {
  CoordinateId coordinate = kNoCoordinate;
  ShareRole role = ShareRole::kKeep;
  friend bool operator==(const SharedDim&, const SharedDim&) = default;
};

/// The dimensions of a weight are few: no heap up to eight of them.
using SharedDims = InlineVector<SharedDim, 8>;

/// One step of building a graph: a primitive and its arguments. All Shares of one weight are one step, a contraction.
struct Step {
  Primitive primitive = Primitive::kReduce;
  std::array<CoordinateId, 2> in{kNoCoordinate, kNoCoordinate};
  /// Filled by Graph::apply.
  std::array<CoordinateId, 2> out{kNoCoordinate, kNoCoordinate};
  /// Merge: the block. Stride: the factor. Reduce: the extent.
  Size size;
  /// Shift: the amount.
  int amount = 0;
  /// Unfold: pads K-1 before and nothing after.
  bool causal = false;
  /// Share: the dimensions of the new weight.
  SharedDims dims;

  friend bool operator==(const Step&, const Step&) = default;

  static Step split(CoordinateId major, CoordinateId minor);
  static Step merge(CoordinateId in, Size block);
  static Step shift(CoordinateId in, int amount);
  static Step expand(CoordinateId in);
  static Step unfold(CoordinateId in, CoordinateId window, bool causal = false);
  static Step stride(CoordinateId in, Size factor);
  static Step reduce(Size extent);
  static Step contract(SharedDims dims);
};

struct PrimitiveInfo {
  Primitive primitive;
  /// The name in text, JSON ("contract" for Share) and messages.
  std::string_view name;
  int consumes;
  int produces;
  std::string_view doc;
  /// Extents of what is produced, from the extents of what is consumed.
  std::array<Size, 2> (*extents)(const Step& step, std::span<const Size> in);
  /// Whether the step makes sense when sizes have these values: `in` are the extents consumed, `size` the value of
  /// step.size, `out` the extents produced.
  bool (*fits)(const Step& step, std::span<const std::int64_t> in, std::int64_t size);
};

const PrimitiveInfo& primitive_info(Primitive primitive);
std::optional<Primitive> find_primitive(std::string_view name);

// One per file in primitives/.
extern const PrimitiveInfo kSplitInfo;
extern const PrimitiveInfo kMergeInfo;
extern const PrimitiveInfo kShiftInfo;
extern const PrimitiveInfo kExpandInfo;
extern const PrimitiveInfo kUnfoldInfo;
extern const PrimitiveInfo kStrideInfo;
extern const PrimitiveInfo kReduceInfo;
extern const PrimitiveInfo kShareInfo;

}  // namespace syno
