// Rewrites of loop nests that keep what they compute.
#pragma once

#include <vector>

#include "syno/plan/loop_nest.h"

namespace syno {

/// The same nest with other axes: `values` are the old axes in terms of the new ones, which reach each index once.
LoopNest with_axes(const LoopNest& nest, std::vector<LoopAxis> axes, std::size_t outputs,
                   const std::vector<Index>& values);

/// An access in terms of other axes of these extents. Conditions that always hold are dropped.
Access substituted(const Access& access, const std::vector<std::int64_t>& extents,
                   const std::vector<Index>& values);

/// With axis `axis` as two, of which the inner one, which comes second, has the extent `block`.
LoopNest split_axis(const LoopNest& nest, int axis, std::int64_t block);
/// With the axes `outer` and `inner` as one in the place of `stays`, which is one of them.
LoopNest joined_axes(const LoopNest& nest, int outer, int inner, int stays);

/// Puts dimension `order[d]` of a buffer at place d, wherever it is stored and read.
void permute_buffer(LoopProgram& program, int buffer, const std::vector<std::size_t>& order);

/// Without the axis of the batch, for programs that are `batched`: the nest of one image, which reads and stores at
/// index 0 of dimension 0.
LoopNest without_batch(const LoopProgram& program, const LoopNest& nest);

/// With axes shifted around so that cyclic shifts in the store become cyclic shifts of what is read.
LoopNest unrotated(const LoopNest& nest);

/// Without axes of extent 1, and with axes that are read and stored like one merged into one.
LoopNest merged(const LoopProgram& program, const LoopNest& nest);
/// The same, but summed axes and the first `kept` axes stay as they are.
LoopNest merged_outputs(const LoopProgram& program, const LoopNest& nest, std::size_t kept);

/// `consumer` with its operand `operand`, which is what `producer` stores, computed where it is read. Axes that the
/// producer sums come last. It repeats work where an element is read twice: whether that pays is the caller's affair.
LoopNest inlined(const LoopNest& consumer, std::size_t operand, const LoopNest& producer);

/// The position in the row-major data of its buffer.
Index flat_address(const LoopProgram& program, const LoopNest& nest, const Access& access);

}  // namespace syno
