// How an index depends on the axis that vectors lie over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "syno/plan/loop_nest.h"

namespace syno::cpp {

/// Whether an axis is in the index as a multiple alone.
bool is_linear(const Index& index, int axis);
/// The index without its multiple of the axis.
Index without(const Index& index, int axis);
bool in_conditions(const Access& access, int axis);
/// Whether what is read, or whether it is read, depends on the axis.
bool depends_on(const Access& access, int axis);

/// Lanes are memory side by side, or a stride apart, within bounds that the conditions give.
bool is_strided(const Index& address, const Access& access, int lane);
/// Of an address base + (lane + rest) mod length, with the lane's own length: the rest. Only then is there one.
std::optional<Index> rotation_of(const Index& address, const Access& access, int lane,
                                 std::int64_t length);

/// How the lanes of an operand stand in memory.
enum class Lanes : std::uint8_t {
  kPlain,      ///< all at one place, or side by side
  kPartial,    ///< side by side, but masked or rotated
  kScattered,  ///< anywhere else
};
Lanes lanes_of(const LoopProgram& program, const LoopNest& nest, int lane, std::size_t operand);

}  // namespace syno::cpp
