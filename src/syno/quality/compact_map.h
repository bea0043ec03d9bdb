// An access map in fixed arrays and bit sets, for checking many operators a second. It is read from a graph without
// memory of its own on the heap; what it says is what make_access_map says.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "syno/interp/access_map.h"
#include "syno/quality/extent_table.h"

namespace syno {

/// A bit a coordinate.
using CoordinateMask = std::uint64_t;

struct CompactMap {
  static constexpr std::size_t kMaxCoordinates = 64;
  static constexpr std::size_t kMaxWeights = 8;

  struct Node {
    ExpressionKind kind{};
    bool causal = false;
    CoordinateId a = kNoCoordinate;
    CoordinateId b = kNoCoordinate;
    /// kCyclicShift: the amount.
    std::int16_t amount = 0;
    ExtentTable::Number extent = 0;
    /// kRemainder: the coordinates that it tells, as a set (parts_cut_again).
    CoordinateMask told = 0;
  };

  std::size_t count = 0;
  std::array<Node, kMaxCoordinates> nodes;
  /// Iterators and reductions that a coordinate depends on, as coordinates.
  std::array<CoordinateMask, kMaxCoordinates> depends;
  CoordinateMask iterators = 0;
  CoordinateMask reductions = 0;
  CoordinateMask windows = 0;
  CoordinateMask strides = 0;
  /// The coordinate of each input dimension, and all of them.
  std::size_t rank = 0;
  std::array<CoordinateId, kMaxCoordinates> match;
  CoordinateMask data = 0;
  /// Coordinates in some weight.
  CoordinateMask shared = 0;
  std::size_t weight_count = 0;
  std::array<CoordinateMask, kMaxWeights> weights;
  /// The bindings under which every extent and factor is a positive integer.
  FitMask fit = 0;

  /// Reads the operator that the matching `matched` makes of `graph`, whose sizes belong to the table of the bindings of `extents`.
  /// False when it has more coordinates or weights than fit here, or a stride by a factor that is no integer where its
  /// result is one: the general functions take care of it.
  bool read(const Graph& graph, std::span<const CoordinateId> matched, ExtentTable& extents);
};

inline constexpr CoordinateMask coordinate_bit(int coordinate) {
  return CoordinateMask{1} << coordinate;
}

/// Calls visit(coordinate) for every bit, ascending.
template <class Visit>
void for_each_bit(CoordinateMask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(__builtin_ctzll(mask));
}

}  // namespace syno
