// The eight primitives as data. Each has a file of its own in primitives/, with its meaning, its factory and one
// PrimitiveInfo: the traits by which everything else tells primitives apart. Graphs are built from the output to the
// input: "below" is nearer the output.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syno/graph/expression.h"
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
  kContraction
};
inline constexpr std::size_t kPrimitiveCount = 8;

/// Index of a coordinate in Graph::coordinates().
using CoordinateId = std::int16_t;
inline constexpr CoordinateId kNoCoordinate = -1;

/// What happens to a coordinate that a weight takes.
enum class WeightRole : std::uint8_t {
  kKeep,  ///< goes into the weight and stays in the data frontier
  kDrop,  ///< goes into the weight and leaves the frontier; no earlier weight holds it (an outer index)
  kJoin,  ///< goes into the weight and leaves the frontier; an earlier weight holds it too (an index only weights hold)
};
std::string_view role_name(WeightRole role);

struct WeightDim {
  CoordinateId coordinate = kNoCoordinate;
  WeightRole role = WeightRole::kKeep;
  friend bool operator==(const WeightDim&, const WeightDim&) = default;
};

/// The dimensions of a weight are few: no heap up to eight of them.
using WeightDims = InlineVector<WeightDim, 8>;

/// What a step is to an operator.
enum class StepKind : std::uint8_t {
  kView,         ///< makes coordinates of coordinates
  kRepetition,   ///< consumes a coordinate and makes none: the data does not depend on it
  kReduction,    ///< makes a coordinate that is summed over
  kContraction,  ///< multiplies with a weight; consumes what its roles say
};

/// What a step names beside the coordinates that it consumes: in text and JSON, and as a move of a search.
enum class Argument : std::uint8_t {
  kNone,
  kExtent,  ///< the size of what is made
  kBlock,   ///< a size that divides the extent of what is consumed
  kFactor,  ///< a size that multiplies it
  kAmount,  ///< an integer other than 0
  kCausal,  ///< whether the window, which is the second coordinate, ends at its place
  kRoles,   ///< the coordinates of a weight, each with its role
};
constexpr bool takes_size(Argument argument) {
  return argument == Argument::kExtent || argument == Argument::kBlock ||
         argument == Argument::kFactor;
}

/// What is known of one side of a step when the other side is.
enum class Relation : std::uint8_t {
  kNone,
  kOnto,      ///< one-to-one and onto: either side gives the other, and every value of it is met
  kOneToOne,  ///< either side gives the other
  kSum,       ///< of the two coordinates consumed and the one made, any two give the third
};

/// What a step charges against the budgets of variables, by absolute power.
enum class Charge : std::uint8_t {
  kNothing,
  kSize,    ///< the size that it names
  kMadeUp,  ///< the powers that its block and the quotient have beyond the extent: (|block| + |quotient| - |extent|) / 2
  kWeightDims,  ///< the primary powers of each coordinate that the weight takes
};

struct PrimitiveInfo {
  Primitive primitive;
  /// The name in text, JSON ("contract" for a contraction) and messages.
  std::string_view name;
  /// How it is written in text.
  std::string_view form;
  std::string_view doc;
  StepKind kind;
  int consumes;
  int produces;
  Argument argument;
  Relation relation;
  Charge charge;
  /// The limit (of Limits) on its steps; of a repetition, on the product of what is repeated.
  std::string_view limit;
  /// How each coordinate that it makes is computed, and so its extent; kIterator where it makes none.
  std::array<ExpressionKind, 2> makes;
  /// Whether it writes the elements of a tensor that has what it makes; other views re-index them.
  bool copies = false;

  // What a view does to the coordinates that it takes.
  constexpr bool joins() const { return relation == Relation::kOnto && consumes == 2; }
  constexpr bool cuts() const { return produces == 2; }
  constexpr bool permutes() const {
    return relation == Relation::kOnto && consumes == 1 && produces == 1;
  }
  constexpr bool scales() const { return relation == Relation::kOneToOne; }
  constexpr bool slides() const { return relation == Relation::kSum; }
};

/// The only primitives of their kinds.
inline constexpr Primitive kReductionPrimitive = Primitive::kReduce;
inline constexpr Primitive kContractionPrimitive = Primitive::kContraction;

namespace detail {
/// In the order of the enumerators.
extern const std::array<const PrimitiveInfo*, kPrimitiveCount> kPrimitives;
}  // namespace detail

inline const PrimitiveInfo& primitive_info(Primitive primitive) {
  return *detail::kPrimitives[static_cast<std::size_t>(primitive)];
}
std::optional<Primitive> find_primitive(std::string_view name);

/// Whether the size that a step of `info` names has sense with this value, where `in` is the extent that it consumes.
bool size_fits(const PrimitiveInfo& info, std::int64_t in, std::int64_t size);

/// One step of building a graph: a primitive and its arguments.
struct Step {
  Primitive primitive{};
  std::array<CoordinateId, 2> in{kNoCoordinate, kNoCoordinate};
  /// Filled by Graph::apply.
  std::array<CoordinateId, 2> out{kNoCoordinate, kNoCoordinate};
  /// What the argument is, where it is a size; 1 otherwise.
  Size size;
  /// Argument::kAmount.
  int amount = 0;
  /// Argument::kCausal: pads K-1 before and nothing after.
  bool causal = false;
  /// Argument::kRoles: the dimensions of the new weight.
  WeightDims dims;

  const PrimitiveInfo& info() const { return primitive_info(primitive); }
  bool is_view() const { return info().kind == StepKind::kView; }
  bool is_repetition() const { return info().kind == StepKind::kRepetition; }
  bool is_reduction() const { return info().kind == StepKind::kReduction; }
  bool is_contraction() const { return info().kind == StepKind::kContraction; }
  /// Whether its first result is computed so.
  bool makes(ExpressionKind kind) const { return info().makes[0] == kind; }

  friend bool operator==(const Step&, const Step&) = default;

  // Each stands in the file of its primitive.
  static Step split(CoordinateId major, CoordinateId minor);
  static Step merge(CoordinateId in, Size block);
  static Step shift(CoordinateId in, int amount);
  static Step expand(CoordinateId in);
  static Step unfold(CoordinateId in, CoordinateId window, bool causal = false);
  static Step stride(CoordinateId in, Size factor);
  static Step reduce(Size extent);
  static Step contract(WeightDims dims);
};

// One per file in primitives/.
extern const PrimitiveInfo kSplitInfo;
extern const PrimitiveInfo kMergeInfo;
extern const PrimitiveInfo kShiftInfo;
extern const PrimitiveInfo kExpandInfo;
extern const PrimitiveInfo kUnfoldInfo;
extern const PrimitiveInfo kStrideInfo;
extern const PrimitiveInfo kReduceInfo;
extern const PrimitiveInfo kContractionInfo;

}  // namespace syno
