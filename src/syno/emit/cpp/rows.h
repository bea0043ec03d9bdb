// Nests as loops over rows: vectors lie over one axis of the result, all other axes are loops. This is how panels are
// filled, and how everything runs that is no matrix product: sums, copies, element-wise and depthwise products.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syno/emit/cpp/formats.h"
#include "syno/plan/loop_nest.h"

namespace syno::cpp {

/// A producer that runs inside of its consumer repeats its work at most so often.
inline constexpr double kMostRepeats = 1.4;

struct RowLoops {
  LoopNest nest;
  /// Axes of the result in the order of the loops, without `lane` and `tile`.
  std::vector<int> outer;
  /// The axis that vectors lie over, or -1 when the result is one element.
  int lane = -1;
  /// An axis whose elements are summed side by side: they share what is loaded, or at least where it is. Or -1.
  int tile = -1;
  /// A summed axis that moves over the same elements of an operand as the tile does, or -1: what lies at `stride` * tile +
  /// `step` * window is loaded once for all elements of the tile that use it.
  int window = -1;
  std::int64_t stride = 1, step = 1;
  /// Summed axes from `inner` on belong to a producer, whose operands `is_inner` marks. It is summed first, once for all
  /// elements of the tile that it does not depend on, and never stored. Without one, `inner` is the number of axes.
  std::size_t inner = 0;
  std::vector<bool> is_inner;
  /// How the elements that are stored stand in memory.
  Element target = Element::kFloat32;
  /// The axis of elements that share a word of 32 bits while the lane's stand a word apart, or -1. It is the tile
  /// wherever its elements can be summed side by side.
  int part = -1;

  /// Iterations of the outer loops, which may be split between threads.
  std::int64_t count() const;
};

/// The first `kept` axes stay the outermost loops, so that ranges of iterations are parts of the result. is_copy: what is
/// read is stored as it is, in whatever order.
RowLoops row_loops(const LoopProgram& program, const LoopNest& nest, std::size_t kept,
                   Element target = Element::kFloat32, bool is_copy = false);

/// The consumer with the producer of its operand `operand` summed in registers. Nothing when that repeats the
/// producer's work, or the nests are of another kind.
std::optional<RowLoops> fused_row_loops(const LoopProgram& program, const LoopNest& consumer,
                                        std::size_t operand, const LoopNest& producer,
                                        Element target = Element::kFloat32);

/// The same rows after their operands have changed: axes that are read and stored like one are merged.
RowLoops merged_rows(const LoopProgram& program, const RowLoops& rows, std::size_t kept);

/// Whether what the operand reads depends on the tile and the window of the rows alone by where they meet.
bool slides(const LoopProgram& program, const RowLoops& rows, std::size_t operand);

/// Whether the producer is another one for each element of the tile.
bool tiles_inner(const LoopProgram& program, const RowLoops& rows);

}  // namespace syno::cpp
