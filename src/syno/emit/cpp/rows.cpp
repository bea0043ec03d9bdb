#include "syno/emit/cpp/rows.h"

#include <algorithm>
#include <utility>

#include "syno/emit/cpp/lanes.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"

namespace syno::cpp {
namespace {

constexpr std::int64_t kMostTile = 8;
constexpr std::int64_t kMostFusedTile = 16;
// Rows of fewer elements than this fill too little of a vector, and several make one of at most so many.
constexpr std::int64_t kShortRow = 8;
constexpr std::int64_t kMostJoined = 64;
// So many elements that the tile and the window meet in are unrolled, and so many where the tile strides.
constexpr std::int64_t kMostMet = 16;
constexpr std::int64_t kMostMetInStrides = 20;
// Lanes further apart touch too many lines of memory.
constexpr std::int64_t kMostApart = 2;

// Splits output axis `axis` of the rows where it is longer than `block`. Returns the axis of extent `block`.
int split_rows(RowLoops& rows, int axis, std::int64_t block) {
  if (rows.nest.axes[at(axis)].extent == block) return axis;
  rows.nest = split_axis(rows.nest, axis, block);
  for (int* const moved : {&rows.lane, &rows.tile, &rows.window}) {
    if (*moved > axis) ++*moved;
  }
  ++rows.inner;
  return axis + 1;
}

// Vectors over what is stored side by side, or else over the longest axis.
int lane_of(const LoopNest& nest, const Index& stored, std::size_t kept, int part) {
  int lane = -1;
  for (std::size_t a = kept; a < nest.outputs; ++a) {
    const int axis = static_cast<int>(a);
    if (axis == part) continue;
    if (part >= 0 && is_linear(stored, axis) &&
        stored.coefficient(axis) == nest.axes[at(part)].extent)
      return axis;
    const auto better = [&](int one, int other) {
      if (other < 0) return true;
      const bool side = stored.coefficient(one) == 1 && is_linear(stored, one);
      const bool other_side = stored.coefficient(other) == 1 && is_linear(stored, other);
      if (side != other_side) return side;
      return nest.axes[at(one)].extent > nest.axes[at(other)].extent;
    };
    if (better(axis, lane)) lane = axis;
  }
  return lane;
}

// The axis whose elements are side by side, `size` of them, between those of another axis, or -1.
// The other axis has at least so many elements.
int part_of_words(const LoopNest& nest, const Index& stored, std::size_t kept, std::int64_t size,
                  std::int64_t least) {
  int part = -1;
  bool words = false;
  for (std::size_t a = kept; a < nest.outputs && size > 1; ++a) {
    const int axis = static_cast<int>(a);
    if (!is_linear(stored, axis)) continue;
    if (stored.coefficient(axis) == 1 && nest.axes[a].extent == size) part = axis;
    words = words || (stored.coefficient(axis) == size && nest.axes[a].extent >= least);
  }
  return words ? part : -1;
}

// Whether the parts of words may be summed side by side: they are steps apart, and share all conditions.
bool is_tile_of_parts(const LoopProgram& program, const RowLoops& rows) {
  return std::all_of(rows.nest.operands.begin(), rows.nest.operands.end(),
                     [&](const Access& operand) {
                       return !in_conditions(operand, rows.part) &&
                              is_linear(flat_address(program, rows.nest, operand), rows.part);
                     });
}

bool is_side_by_side(const Index& address, const Access& operand, int lane) {
  return is_strided(address, operand, lane) && address.coefficient(lane) == 1;
}

// Whether all operands are one number for all lanes, or side by side.
bool loads_side_by_side(const LoopProgram& program, const RowLoops& rows) {
  for (const Access& operand : rows.nest.operands) {
    const Index address = flat_address(program, rows.nest, operand);
    if (!address.depends_on(rows.lane) && !in_conditions(operand, rows.lane)) continue;
    if (!is_side_by_side(address, operand, rows.lane)) return false;
  }
  return true;
}

// Whether the elements of an axis may be summed side by side: they are steps apart, and share all conditions.
// `only_weights`: a single operand depends on it, and no lane of that.
bool is_tile(const LoopProgram& program, const RowLoops& rows, int axis, bool only_weights) {
  if (axis == rows.lane || !is_linear(flat_address(program, rows.nest, rows.nest.store), axis))
    return false;
  const bool fused = rows.inner < rows.nest.axes.size();
  std::size_t users = 0;
  for (std::size_t o = 0; o < rows.nest.operands.size(); ++o) {
    const Access& operand = rows.nest.operands[o];
    const Index address = flat_address(program, rows.nest, operand);
    if (in_conditions(operand, axis) || !is_linear(address, axis)) return false;
    if (!address.depends_on(axis)) continue;
    ++users;
    const bool splat =
        rows.lane < 0 || (!address.depends_on(rows.lane) && !in_conditions(operand, rows.lane));
    if ((only_weights || fused) && !splat) return false;
    if (only_weights && rows.is_inner[o]) return false;
    // Lines of memory that lanes far apart touch would be too many.
    if (!splat && is_strided(address, operand, rows.lane) && address.coefficient(rows.lane) != 1)
      return false;
  }
  return only_weights ? users == 1 : users > 0;
}

// As much of an axis as a tile takes, or 1.
std::int64_t tile_block(std::int64_t extent, std::int64_t most) {
  std::int64_t block = std::min(extent, most);
  while (extent % block != 0) --block;
  return block;
}

void choose_tile(const LoopProgram& program, RowLoops& rows, std::size_t kept, bool only_weights,
                 std::int64_t most) {
  for (std::size_t a = kept; a < rows.nest.outputs; ++a) {
    const int axis = static_cast<int>(a);
    if (!is_tile(program, rows, axis, only_weights)) continue;
    // A part of an axis may be in addresses as a quotient that the whole one is not in; parts of another size are not.
    std::int64_t block = tile_block(rows.nest.axes[a].extent, most);
    for (; block >= 2; block = tile_block(rows.nest.axes[a].extent, block - 1)) {
      RowLoops tried = rows;
      const int tile = split_rows(tried, axis, block);
      if (!is_tile(program, tried, tile, only_weights)) continue;
      rows = std::move(tried);
      rows.tile = tile;
      return;
    }
  }
}

// Whether the index depends on tile and window by `stride` * tile + `step` * window alone, or on neither.
bool slides_along(const Index& index, const RowLoops& rows) {
  if (!index.depends_on(rows.tile) && !index.depends_on(rows.window)) return true;
  const std::int64_t tile = index.coefficient(rows.tile), window = index.coefficient(rows.window);
  return is_linear(index, rows.tile) && is_linear(index, rows.window) && tile != 0 &&
         tile % rows.stride == 0 && window == rows.step * (tile / rows.stride);
}

// Whether the tile and the window meet in what vectors are loaded from, and all else is one number for all lanes that
// the tile does not change.
bool is_window(const LoopProgram& program, const RowLoops& rows) {
  if (rows.tile == rows.lane ||
      !is_linear(flat_address(program, rows.nest, rows.nest.store), rows.tile))
    return false;
  bool meet = false;
  for (std::size_t o = 0; o < rows.nest.operands.size(); ++o) {
    const Access& operand = rows.nest.operands[o];
    const Index address = flat_address(program, rows.nest, operand);
    if (slides(program, rows, o)) {
      const std::int64_t apart = rows.stride == 1 ? 1 : kMostApart;
      if (!is_strided(address, operand, rows.lane) || address.coefficient(rows.lane) < 1 ||
          address.coefficient(rows.lane) > apart)
        return false;
      meet = true;
    } else if (depends_on(operand, rows.tile) || depends_on(operand, rows.lane) ||
               in_conditions(operand, rows.window)) {
      return false;
    }
  }
  return meet;
}

// Whether vectors over rows of `outer` and `inner` one after the other load elements side by side, or few that are near.
bool joins(const LoopProgram& program, const LoopNest& nest, int outer, int inner) {
  const std::int64_t length = nest.axes[at(inner)].extent;
  return std::all_of(nest.operands.begin(), nest.operands.end(), [&](const Access& operand) {
    const Index address = flat_address(program, nest, operand);
    if (in_conditions(operand, outer) || in_conditions(operand, inner)) return false;
    if (!is_linear(address, outer) || !is_linear(address, inner)) return false;
    const std::int64_t step = address.coefficient(outer);
    const std::int64_t within = address.coefficient(inner);
    return step == length * within || (within == 0 && 0 < step && step <= length);
  });
}

// A lane over few elements, such as the rows of a small block of a matrix, goes on in the axis outside of it.
void lengthen_lane(const LoopProgram& program, RowLoops& rows, std::size_t kept) {
  if (rows.lane < 0 || rows.nest.macs() == 0) return;
  const std::int64_t length = rows.nest.axes[at(rows.lane)].extent;
  const Index stored = flat_address(program, rows.nest, rows.nest.store);
  if (length >= kShortRow || !is_linear(stored, rows.lane) || stored.coefficient(rows.lane) != 1)
    return;
  for (std::size_t a = kept; a < rows.nest.outputs; ++a) {
    const int axis = static_cast<int>(a);
    if (axis == rows.lane || !is_linear(stored, axis) || stored.coefficient(axis) != length ||
        !joins(program, rows.nest, axis, rows.lane))
      continue;
    const std::int64_t block = tile_block(rows.nest.axes[a].extent, kMostJoined / length);
    if (block < 2) continue;
    const int outer = split_rows(rows, axis, block);
    rows.nest = joined_axes(rows.nest, outer, rows.lane, rows.lane);
    if (rows.lane > outer) --rows.lane;
    --rows.inner;
    return;
  }
}

// The rows with a tile of an axis that meets a window, or nothing.
std::optional<RowLoops> with_window(const LoopProgram& program, RowLoops rows, int axis, int window,
                                    std::int64_t stride, std::int64_t step) {
  const std::int64_t extent = rows.nest.axes[at(axis)].extent;
  const std::int64_t length = rows.nest.axes[at(window)].extent;
  const auto met = [&](std::int64_t tile) { return stride * (tile - 1) + step * (length - 1) + 1; };
  std::int64_t block = tile_block(extent, kMostTile);
  if (stride > 1)
    while (block > 1 && met(block) > kMostMetInStrides) block = tile_block(extent, block - 1);
  // Elements that meet no other one load nothing less.
  if (length <= stride || step >= block) return std::nullopt;
  if (met(block) > (stride > 1 ? kMostMetInStrides : kMostMet)) return std::nullopt;
  rows.tile = axis;
  rows.window = window;
  rows.stride = stride;
  rows.step = step;
  if (!is_window(program, rows)) return std::nullopt;
  rows.tile = split_rows(rows, axis, block);
  // As of a tile.
  if (!is_window(program, rows)) return std::nullopt;
  return rows;
}

// Rows of an output that windows read again and again, such as those of a depthwise convolution or of pooling.
void choose_window(const LoopProgram& program, RowLoops& rows, std::size_t kept) {
  if (rows.lane < 0) return;
  for (std::size_t a = kept; a < rows.nest.outputs; ++a) {
    for (std::size_t w = rows.nest.outputs; w < rows.nest.axes.size(); ++w) {
      constexpr std::pair<std::int64_t, std::int64_t> kWays[] = {{1, 1}, {1, 2}, {1, 3}, {2, 1}};
      for (const auto& [stride, step] : kWays) {
        auto found =
            with_window(program, rows, static_cast<int>(a), static_cast<int>(w), stride, step);
        if (!found) continue;
        rows = std::move(*found);
        return;
      }
    }
  }
}

void order_loops(const LoopProgram& program, RowLoops& rows, std::size_t kept) {
  for (std::size_t a = 0; a < rows.nest.outputs; ++a) {
    const int axis = static_cast<int>(a);
    if (axis != rows.lane && axis != rows.tile) rows.outer.push_back(axis);
  }
  const Index stored = flat_address(program, rows.nest, rows.nest.store);
  std::stable_sort(rows.outer.begin() + static_cast<std::ptrdiff_t>(kept), rows.outer.end(),
                   [&](int a, int b) { return stored.coefficient(a) > stored.coefficient(b); });
}

// A row whose elements are read from several places in turns, such as that of a pixel shuffle, as two axes.
void split_row(const LoopProgram& program, RowLoops& rows, std::size_t kept, std::int64_t size) {
  const Index stored = flat_address(program, rows.nest, rows.nest.store);
  for (std::size_t a = kept; a < rows.nest.outputs; ++a) {
    const int axis = static_cast<int>(a);
    if (!is_linear(stored, axis) || stored.coefficient(axis) != 1) continue;
    const bool in_turns = std::any_of(
        rows.nest.operands.begin(), rows.nest.operands.end(), [&](const Access& operand) {
          return !is_linear(flat_address(program, rows.nest, operand), axis);
        });
    if (!in_turns || rows.nest.axes[a].extent % size != 0) return;
    split_rows(rows, axis, size);
    return;
  }
}

// Parts of words of 32 bits must be stored together. Two or four floats may be: lanes of so many vectors in turns.
bool choose_parts(const LoopProgram& program, RowLoops& rows, std::size_t kept) {
  const std::int64_t shared = 4 / bytes_of(rows.target);
  const std::vector<std::int64_t> sizes =
      shared > 1 ? std::vector<std::int64_t>{shared} : std::vector<std::int64_t>{2, 4};
  for (const std::int64_t size : sizes) {
    RowLoops tried = rows;
    if (shared == 1) split_row(program, tried, kept, size);
    const Index split = flat_address(program, tried.nest, tried.nest.store);
    tried.part = part_of_words(tried.nest, split, kept, size, shared == 1 ? kShortRow : 1);
    if (tried.part < 0) continue;
    tried.lane = lane_of(tried.nest, split, kept, tried.part);
    if (is_tile_of_parts(program, tried)) tried.tile = tried.part;
    if (shared == 1 && (tried.tile < 0 || !loads_side_by_side(program, tried))) continue;
    rows = tried;
    return true;
  }
  return false;
}

void choose(const LoopProgram& program, RowLoops& rows, std::size_t kept) {
  const bool fused = rows.inner < rows.nest.axes.size();
  if (!fused && choose_parts(program, rows, kept)) {
    order_loops(program, rows, kept);
    return;
  }
  rows.lane = lane_of(rows.nest, flat_address(program, rows.nest, rows.nest.store), kept, -1);
  if (!fused) lengthen_lane(program, rows, kept);
  choose_tile(program, rows, kept, true, fused ? kMostFusedTile : kMostTile);
  if (rows.tile < 0 && !fused) choose_window(program, rows, kept);
  // A copy gains nothing.
  if (rows.tile < 0 && rows.nest.macs() > 0) choose_tile(program, rows, kept, false, kMostTile);
  order_loops(program, rows, kept);
}

// Whether what lies side by side in the result does so in the one operand, too.
bool stores_lanes_as_read(const LoopProgram& program, const LoopNest& nest, std::size_t kept) {
  if (nest.operands.size() != 1 || nest.axes.size() != nest.outputs) return false;
  const Index stored = flat_address(program, nest, nest.store);
  const int lane = lane_of(nest, stored, kept, -1);
  if (lane < 0 || !is_linear(stored, lane) || stored.coefficient(lane) != 1) return false;
  const Index address = flat_address(program, nest, nest.operands[0]);
  return is_linear(address, lane) && address.coefficient(lane) == 1;
}

}  // namespace

std::int64_t RowLoops::count() const {
  std::int64_t count = 1;
  for (const int axis : outer) count *= nest.axes[at(axis)].extent;
  return count;
}

bool slides(const LoopProgram& program, const RowLoops& rows, std::size_t operand) {
  if (rows.window < 0) return false;
  const Access& access = rows.nest.operands[operand];
  const Index address = flat_address(program, rows.nest, access);
  const auto along = [&](const Index& index) { return slides_along(index, rows); };
  return address.depends_on(rows.tile) && along(address) &&
         std::all_of(
             access.conditions.begin(), access.conditions.end(), [&](const Condition& condition) {
               const bool meets =
                   condition.index.depends_on(rows.tile) || condition.index.depends_on(rows.window);
               // Bounds of the lanes are for all of the tile.
               return along(condition.index) && !(meets && condition.index.depends_on(rows.lane));
             });
}

bool tiles_inner(const LoopProgram& program, const RowLoops& rows) {
  if (rows.tile < 0) return false;
  for (std::size_t o = 0; o < rows.nest.operands.size(); ++o) {
    if (rows.is_inner[o] &&
        flat_address(program, rows.nest, rows.nest.operands[o]).depends_on(rows.tile))
      return true;
  }
  return false;
}

RowLoops row_loops(const LoopProgram& program, const LoopNest& given, std::size_t kept,
                   Element target, bool is_copy) {
  RowLoops rows;
  rows.target = target;
  rows.nest = given;
  rows.inner = rows.nest.axes.size();
  rows.is_inner.assign(given.operands.size(), false);
  if (is_copy && stores_lanes_as_read(program, given, kept)) {
    rows.lane = lane_of(given, flat_address(program, given, given.store), kept, -1);
    order_loops(program, rows, kept);
  } else {
    choose(program, rows, kept);
  }
  return rows;
}

std::optional<RowLoops> fused_row_loops(const LoopProgram& program, const LoopNest& consumer,
                                        std::size_t operand, const LoopNest& producer,
                                        Element target) {
  const auto long_sums = [](const LoopNest& nest) {
    std::size_t count = 0;
    for (std::size_t a = nest.outputs; a < nest.axes.size(); ++a) {
      if (nest.axes[a].extent > 1) ++count;
    }
    return count;
  };
  const std::size_t inner = long_sums(producer);
  if (inner == 0 || long_sums(consumer) == 0) return std::nullopt;
  RowLoops rows;
  rows.target = target;
  rows.nest = merged_outputs(program, inlined(consumer, operand, producer), 0);
  rows.inner = rows.nest.axes.size() - inner;
  rows.is_inner.assign(rows.nest.operands.size(), false);
  for (std::size_t i = 0; i < producer.operands.size(); ++i) rows.is_inner[operand + i] = true;
  choose(program, rows, 0);
  // Without a tile, or with a part of an axis, every row would sum the producer again.
  double sums = 1;
  for (std::size_t a = 0; a < rows.inner; ++a) {
    if (static_cast<int>(a) != rows.tile || tiles_inner(program, rows))
      sums *= static_cast<double>(rows.nest.axes[a].extent);
  }
  double elements = 1;
  for (std::size_t a = 0; a < producer.outputs; ++a)
    elements *= static_cast<double>(producer.axes[a].extent);
  if (sums > kMostRepeats * elements) return std::nullopt;
  return rows;
}

RowLoops merged_rows(const LoopProgram& program, const RowLoops& rows, std::size_t kept) {
  RowLoops result;
  const std::size_t sums = rows.nest.axes.size() - rows.inner;
  result.nest = merged_outputs(program, rows.nest, kept);
  result.inner = result.nest.axes.size() - sums;
  result.is_inner = rows.is_inner;
  result.target = rows.target;
  choose(program, result, kept);
  return result;
}

}  // namespace syno::cpp
