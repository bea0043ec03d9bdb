#include "syno/emit/training/panel.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/error.h"

namespace syno::training {
namespace {

class Maker {
 public:
  Maker(const LoopProgram& program, const LoopNest& nest, std::size_t operand,
        const std::vector<int>& columns)
      : nest_(nest),
        access_(nest.operands[operand]),
        columns_(columns),
        shape_(program.buffer(access_.buffer).shape),
        indices_(nest.extents()),
        summed_(access_.index.size(), false),
        own_(nest.axes.size(), false) {}

  Panel run() {
    for (std::size_t d = 0; d < access_.index.size(); ++d) summed_[d] = may_be_summed(d);
    while (demote()) {
    }
    return build();
  }

 private:
  std::int64_t extent(int axis) const { return nest_.axes[at(axis)].extent; }

  bool is_column(int axis) const {
    return std::find(columns_.begin(), columns_.end(), axis) != columns_.end();
  }

  // The condition is about the index of dimension d alone: their difference.
  std::optional<std::int64_t> shift_of(const Condition& condition, std::size_t d) const {
    const Index difference = condition.index - access_.index[d];
    if (!difference.is_constant()) return std::nullopt;
    return difference.constant();
  }

  // Whether a dimension of the copy may stand for the whole index.
  bool may_be_summed(std::size_t d) const {
    const Index& index = access_.index[d];
    if (!index.is_affine() || index.is_constant()) return false;
    std::int64_t product = 1;
    for (const Index::Term& term : index.terms()) {
      // Columns lie side by side: only the outermost may slide.
      if (is_column(term.axis) && (term.axis != columns_[0] || std::abs(term.coefficient) != 1))
        return false;
      product *= extent(term.axis);
    }
    Range range = indices_.range(index);
    if (range.most - range.least + 1 > product) return false;
    for (const Condition& condition : access_.conditions) {
      const auto shift = shift_of(condition, d);
      if (!shift) continue;
      range.least = std::max(range.least, -*shift);
      range.most = std::min(range.most, condition.extent - 1 - *shift);
    }
    return range.least >= 0 && range.most < shape_[d];
  }

  bool is_about_summed(const Condition& condition) const {
    for (std::size_t d = 0; d < summed_.size(); ++d) {
      if (summed_[d] && shift_of(condition, d)) return true;
    }
    return false;
  }

  // Axes that the copy has for themselves, and fewer sums where the outermost column would stand twice.
  bool demote() {
    own_.assign(nest_.axes.size(), false);
    const auto take = [&](const Index& index) {
      for (std::size_t a = 0; a < own_.size(); ++a) {
        if (index.depends_on(static_cast<int>(a))) own_[a] = true;
      }
    };
    for (std::size_t d = 0; d < summed_.size(); ++d) {
      if (!summed_[d]) take(access_.index[d]);
    }
    for (const Condition& condition : access_.conditions) {
      if (!is_about_summed(condition)) take(condition.index);
    }
    if (columns_.empty()) return false;
    bool has_first = own_[at(columns_[0])];
    bool changed = false;
    for (std::size_t d = 0; d < summed_.size(); ++d) {
      if (!summed_[d] || !access_.index[d].depends_on(columns_[0])) continue;
      if (has_first) {
        summed_[d] = false;
        changed = true;
      }
      has_first = true;
    }
    return changed;
  }

  Panel build() {
    Panel panel;
    LoopNest& fill = panel.fill;
    const auto add = [&](const std::string& name, std::int64_t size, const Index& read) {
      fill.axes.push_back({name, size, false});
      panel.shape.push_back(size);
      panel.elements *= size;
      panel.read.index.push_back(read);
      return Index::axis(static_cast<int>(fill.axes.size()) - 1);
    };
    std::vector<Index> values(nest_.axes.size());
    std::vector<Index> sums(summed_.size());
    const auto add_axis = [&](int axis) {
      values[at(axis)] = add(nest_.axes[at(axis)].name, extent(axis), Index::axis(axis));
    };
    const int first = columns_.empty() ? -1 : columns_[0];
    // Counted down where the outermost column does: columns lie in ascending order.
    const auto add_sum = [&](std::size_t d) {
      const Index& index = access_.index[d];
      const Range range = indices_.range(index);
      const std::int64_t size = range.most - range.least + 1;
      if (first >= 0 && index.coefficient(first) < 0) {
        sums[d] = add("u", size, Index(range.most) - index) * -1 + Index(range.most);
      } else {
        sums[d] = add("u", size, index - Index(range.least)) + Index(range.least);
      }
    };
    for (const auto& [step, place] : in_memory_order(first)) {
      if (place < 0) {
        add_sum(at(-1 - place));
      } else {
        add_axis(place);
      }
    }
    for (const int column : columns_) {
      std::size_t sum = 0;
      while (sum < summed_.size() && !(summed_[sum] && access_.index[sum].depends_on(column)))
        ++sum;
      if (column == first && sum < summed_.size()) {
        add_sum(sum);
      } else {
        add_axis(column);
      }
    }
    fill.outputs = fill.axes.size();
    for (std::size_t a = 0; a < fill.outputs; ++a)
      fill.store.index.push_back(Index::axis(static_cast<int>(a)));
    fill.operands.push_back(filling(values, sums));
    return panel;
  }

  // What is no column, with its step in memory, the largest first: axes, and dimension d as -1 - d.
  std::vector<std::pair<std::int64_t, int>> in_memory_order(int first) const {
    std::vector<std::pair<std::int64_t, int>> order;
    std::vector<std::int64_t> steps(shape_.size(), 1);
    for (std::size_t d = shape_.size(); d-- > 1;) steps[d - 1] = steps[d] * shape_[d];
    for (std::size_t d = 0; d < summed_.size(); ++d) {
      if (summed_[d] && (first < 0 || !access_.index[d].depends_on(first)))
        order.emplace_back(steps[d], -1 - static_cast<int>(d));
    }
    for (std::size_t a = 0; a < own_.size(); ++a) {
      const int axis = static_cast<int>(a);
      if (!own_[a] || is_column(axis)) continue;
      std::int64_t step = 0;
      for (std::size_t d = 0; d < shape_.size(); ++d)
        step += std::abs(access_.index[d].coefficient(axis)) * steps[d];
      order.emplace_back(step, axis);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& one, const auto& other) { return one.first > other.first; });
    return order;
  }

  // The operand in terms of the axes of the copy.
  Access filling(const std::vector<Index>& values, const std::vector<Index>& sums) const {
    Indices indices(copy_extents(values, sums));
    for (const Condition& condition : access_.conditions) {
      if (!is_about_summed(condition)) {
        indices.assume({indices.substitute(condition.index, values), condition.extent});
        continue;
      }
      for (std::size_t d = 0; d < summed_.size(); ++d) {
        if (const auto shift = shift_of(condition, d); shift && summed_[d])
          indices.assume({sums[d] + Index(*shift), condition.extent});
      }
    }
    Access access{access_.buffer, {}, {}};
    for (std::size_t d = 0; d < summed_.size(); ++d) {
      access.index.push_back(summed_[d] ? sums[d] : indices.substitute(access_.index[d], values));
    }
    access.conditions = indices.conditions();
    return access;
  }

  std::vector<std::int64_t> copy_extents(const std::vector<Index>& values,
                                         const std::vector<Index>& sums) const {
    std::vector<std::int64_t> extents;
    const auto set = [&](const Index& value, std::int64_t size) {
      for (const Index::Term& term : value.terms()) {
        if (at(term.axis) >= extents.size()) extents.resize(at(term.axis) + 1, 1);
        extents[at(term.axis)] = size;
      }
    };
    for (std::size_t a = 0; a < values.size(); ++a) set(values[a], nest_.axes[a].extent);
    for (std::size_t d = 0; d < sums.size(); ++d) {
      const Range range = indices_.range(access_.index[d]);
      if (summed_[d]) set(sums[d], range.most - range.least + 1);
    }
    return extents;
  }

  const LoopNest& nest_;
  const Access& access_;
  const std::vector<int>& columns_;
  const std::vector<std::int64_t>& shape_;
  const Indices indices_;
  /// By dimension of the operand: whether the copy has the index as a dimension.
  std::vector<bool> summed_;
  /// By axis: whether the copy has it as a dimension.
  std::vector<bool> own_;
};

}  // namespace

Panel make_panel(const LoopProgram& program, const LoopNest& nest, std::size_t operand,
                 const std::vector<int>& columns) {
  return Maker(program, nest, operand, columns).run();
}

}  // namespace syno::training
