// Parts of an access map that have nothing to do with each other.
//
// Two coordinates are in one component when a step joins what they are made of. Components have no iterator, reduction
// or window in common, so a term is unmasked when it is in each of them, and the terms of an output element are the
// product of what each component contributes: coverage and causality are decided one component at a time, on boxes
// that stay small where the whole operator has billions of terms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syno/interp/access_map.h"
#include "syno/interp/program.h"

namespace syno {

/// The answer to a question that may be too large to decide.
enum class Decision : std::uint8_t { kNo, kYes, kUndecided };

struct Component {
  /// Coordinates, ascending.
  std::vector<CoordinateId> coordinates;
  std::vector<CoordinateId> iterators;
  std::vector<CoordinateId> reductions;
  /// Iterators, then reductions.
  std::vector<CoordinateId> leaves;
  /// The input dimensions that are read here, and their coordinates.
  std::vector<int> data_dims;
  std::vector<CoordinateId> data;
  /// Coordinates of data and of weights, each once: what tells one term from another.
  std::vector<CoordinateId> visible;
  /// Whether a Stride is in it. Without one, every value of `visible` is taken by an unmasked point (coverage.h).
  bool strided = false;

  bool holds(CoordinateId id) const;
};

std::vector<Component> components(const AccessMap& map);

/// By coordinate, then by leaf coordinate: whether it depends on that iterator or reduction.
std::vector<std::vector<bool>> dependences(const AccessMap& map);

/// How many points are looked at before a question about one component stays undecided.
inline constexpr std::int64_t kMaxPoints = std::int64_t{1} << 20;

/// The product of the extents of `ids`, or nothing when it is above `cap`.
std::optional<std::int64_t> box(const Program& program, const std::vector<CoordinateId>& ids,
                                std::int64_t cap = kMaxPoints);

/// The instructions of `program` that make coordinates of `component`.
std::vector<Instruction> instructions(const Program& program, const Component& component);

}  // namespace syno
