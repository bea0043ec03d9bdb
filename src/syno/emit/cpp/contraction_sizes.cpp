// The sizes of a contraction, its blocks and its panel.
#include <algorithm>

#include "syno/emit/cpp/contraction.h"
#include "syno/support/at.h"

namespace syno::cpp {

std::int64_t Contraction::product(const std::vector<int>& axes) const {
  std::int64_t result = 1;
  for (const int axis : axes) result *= nest.axes[at(axis)].extent;
  return result;
}

std::int64_t Contraction::width() const {
  std::int64_t result = 1;
  for (std::size_t c = 1; c < columns.size(); ++c) result *= nest.axes[at(columns[c])].extent;
  return result;
}

bool Contraction::has_rest() const {
  return !columns.empty() && blocks * block_rows != nest.axes[at(columns[0])].extent;
}

std::int64_t Contraction::block_columns() const {
  return paired ? (block_rows + 1) / 2 * width() : column_count() / blocks;
}

std::int64_t Contraction::line_columns() const {
  const std::int64_t line = columns.empty() ? 1 : nest.axes[at(columns.back())].extent;
  const bool along = std::any_of(slides.begin(), slides.end(),
                                 [](const Slide& slide) { return slide.column > 0; });
  return along ? line : block_columns();
}

std::int64_t Contraction::panel_step(std::size_t column) const {
  std::int64_t step = point;
  for (std::size_t c = column + 1; c < columns.size(); ++c) step *= panel_columns[c];
  return step;
}

std::int64_t Contraction::block_elements() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : panel_shape) elements *= size;
  return elements / (blocks * slice_count());
}

}  // namespace syno::cpp
