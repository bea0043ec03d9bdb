// In which order the dimensions of an intermediate tensor stand in memory. Nobody outside sees it, so it is chosen: so
// that lanes lie side by side where it is computed, or else where it is read.
#pragma once

#include <cstddef>
#include <vector>

#include "syno/plan/loop_nest.h"

namespace syno::cpp {

/// The dimensions of what `producer` stores in the order in which `consumer`, its only reader, or `producer` itself
/// wants them: dimension `order[d]` comes at place d. Empty when they should stay.
std::vector<std::size_t> layout(const LoopProgram& program, const LoopNest& producer,
                                const LoopNest& consumer, std::int64_t cache_floats);

/// The same where what is stored are codes that `consumer` multiplies in words: summed axes of the weights lie inside, so
/// that the producer stores, and the consumer reads, many of them side by side.
std::vector<std::size_t> layout_of_codes(const LoopProgram& program, const LoopNest& producer,
                                         const LoopNest& consumer);

}  // namespace syno::cpp
