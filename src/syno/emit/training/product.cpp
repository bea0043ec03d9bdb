#include "syno/emit/training/product.h"

#include <algorithm>

#include "syno/emit/cpp/lanes.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"

namespace syno::training {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kTileRows = 8;
constexpr std::int64_t kTileVectors = 3;
// Cycles until a sum can be added to again.
constexpr double kLatency = 4;
// With fewer elements, vectors would be mostly empty.
constexpr std::int64_t kLeastColumns = 4;
constexpr std::size_t kMostColumnAxes = 6;
constexpr std::size_t kMostOrdered = 3;

std::int64_t over(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t rows_in_tile(std::int64_t vectors) {
  return vectors == 1 ? 24 : vectors == 2 ? 12 : kTileRows;
}

// Cycles to copy an element in rows of this length, whose reads have such lanes. Lanes that are scattered are transposed
// as squares, where they can.
double copy_cost(cpp::Lanes lanes, std::int64_t run) {
  const double row = 14.0 / static_cast<double>(std::max<std::int64_t>(1, std::min(run, kLanes)));
  switch (lanes) {
    case cpp::Lanes::kPlain: return row;
    case cpp::Lanes::kPartial: return 1.2 * row;
    case cpp::Lanes::kScattered: return 0.7 + row / 2;
  }
  return row;
}

class Finder {
 public:
  Finder(const LoopProgram& program, const LoopNest& nest, const ProductOptions& options)
      : program_(program), nest_(nest), options_(options) {
    stored_ = flat_address(program, nest, nest.store);
  }

  std::optional<ProductForm> run() {
    if (nest_.operands.size() != 2) return std::nullopt;
    for (const std::size_t a : {0U, 1U}) try_operands(a);
    return std::move(best_);
  }

 private:
  std::int64_t extent(int axis) const { return nest_.axes[at(axis)].extent; }
  std::int64_t product(const std::vector<int>& axes) const {
    std::int64_t result = 1;
    for (const int axis : axes) result *= extent(axis);
    return result;
  }

  void try_operands(std::size_t a) {
    a_ = a;
    const Access& one = nest_.operands[a];
    const Access& other = nest_.operands[1 - a];
    std::vector<int> rows;
    std::vector<int> columns;
    std::vector<int> shared;
    terms_.clear();
    for (std::size_t i = 0; i < nest_.axes.size(); ++i) {
      const int axis = static_cast<int>(i);
      const bool in_one = cpp::depends_on(one, axis);
      const bool in_other = cpp::depends_on(other, axis);
      if (i >= nest_.outputs) {
        terms_.push_back(axis);
      } else if (in_one == in_other) {
        shared.push_back(axis);
      } else {
        (in_one ? rows : columns).push_back(axis);
      }
    }
    if (product(columns) < kLeastColumns || columns.size() > kMostColumnAxes ||
        rows.size() > kMostColumnAxes)
      return;
    std::vector<std::vector<int>> row_choices;
    for (std::size_t subset = 0; subset < (std::size_t{1} << rows.size()); ++subset) {
      std::vector<int> choice;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        if ((subset >> r & 1U) != 0) choice.push_back(rows[r]);
      }
      if (choice.size() == rows.size() || choice.size() == 1 ||
          (!choice.empty() && product(choice) <= rows_in_tile(1)))
        row_choices.push_back(std::move(choice));
    }
    sort_by_step(columns, flat_address(program_, nest_, other));
    for (std::size_t subset = 1; subset < (std::size_t{1} << columns.size()); ++subset) {
      std::vector<int> chosen;
      std::vector<int> outer = shared;
      for (std::size_t c = 0; c < columns.size(); ++c)
        ((subset >> c & 1U) != 0 ? chosen : outer).push_back(columns[c]);
      if (product(chosen) < kLeastColumns) continue;
      for (std::vector<int> choice : row_choices) {
        std::vector<int> all = outer;
        for (const int row : rows) {
          if (std::find(choice.begin(), choice.end(), row) == choice.end()) all.push_back(row);
        }
        sort_by_step(choice, flat_address(program_, nest_, one));
        consider(all, choice, chosen);
        // The order of few columns matters: taps beside channels share what they read.
        std::vector<int> order = chosen;
        std::sort(order.begin(), order.end());
        for (bool more = order.size() <= kMostOrdered; more;
             more = std::next_permutation(order.begin(), order.end())) {
          if (order != chosen) consider(all, choice, order);
        }
      }
    }
  }

  // The axis with the largest step outermost.
  void sort_by_step(std::vector<int>& axes, const Index& address) const {
    std::stable_sort(axes.begin(), axes.end(), [&](int one, int other) {
      const std::int64_t a = std::abs(address.coefficient(one));
      const std::int64_t b = std::abs(address.coefficient(other));
      return a != b ? a > b : stored_.coefficient(one) > stored_.coefficient(other);
    });
  }

  // The step between neighbours when the axes are walked like one; nothing when it is not constant.
  std::optional<std::int64_t> step_of(const Index& address, const std::vector<int>& axes) const {
    std::int64_t step = 0;
    std::int64_t inner = 1;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const std::int64_t own = address.coefficient(axes[i]);
      if (i + 1 == axes.size()) step = own;
      if (own != step * inner) return std::nullopt;
      inner *= extent(axes[i]);
    }
    return step;
  }

  bool is_plain(std::size_t operand) const {
    return nest_.operands[operand].conditions.empty() &&
           flat_address(program_, nest_, nest_.operands[operand]).is_affine();
  }

  double panel_cost(std::size_t operand, const std::vector<int>& columns,
                    const Panel& panel) const {
    if (columns.empty())
      return copy_cost(cpp::Lanes::kPartial, panel.shape.empty() ? 1 : panel.shape.back()) *
             static_cast<double>(panel.elements);
    const cpp::Lanes lanes = cpp::lanes_of(program_, nest_, columns.back(), operand);
    return static_cast<double>(panel.elements) * copy_cost(lanes, extent(columns.back()));
  }

  void consider(const std::vector<int>& outer, const std::vector<int>& rows,
                const std::vector<int>& columns) {
    ProductForm form;
    Product& product = form.product;
    product.outer = outer;
    product.rows = rows;
    product.columns = columns;
    product.terms = terms_;
    const std::size_t b = 1 - a_;
    const double count = static_cast<double>(this->product(outer));
    const std::int64_t row_count = this->product(rows);
    const std::int64_t column_count = this->product(columns);
    const std::int64_t vectors = over(column_count, kLanes);
    const std::int64_t in_tile = rows_in_tile(vectors);
    const double tile_rows =
        static_cast<double>(row_count) / static_cast<double>(over(row_count, in_tile));
    const double tile_vectors =
        static_cast<double>(vectors) / static_cast<double>(over(vectors, kTileVectors));
    const double tiles = count * static_cast<double>(over(row_count, in_tile)) *
                         static_cast<double>(over(vectors, kTileVectors));
    const double step =
        std::max({kLatency, tile_rows * tile_vectors / 2, (tile_rows + tile_vectors + 1) / 2});
    const auto terms = static_cast<double>(this->product(terms_));
    form.cost = tiles * (terms * step + 2 * tile_rows * tile_vectors + 20);

    if (!is_plain(b) || step_of(flat_address(program_, nest_, nest_.operands[b]), columns) != 1) {
      form.panels[1] = make_panel(program_, nest_, b, columns);
      form.cost += panel_cost(b, columns, *form.panels[1]);
    }
    const bool single = row_count <= in_tile;
    if (!is_plain(a_) ||
        !(single || step_of(flat_address(program_, nest_, nest_.operands[a_]), rows))) {
      // A single tile or axis has its steps in any order: nothing is moved but what must be.
      const std::vector<int> innermost = single || rows.size() < 2 ? std::vector<int>{} : rows;
      form.panels[0] = make_panel(program_, nest_, a_, innermost);
      form.cost += panel_cost(a_, innermost, *form.panels[0]);
    }
    const bool apart = !stored_.is_affine() || step_of(stored_, columns) != 1 ||
                       !(single || step_of(stored_, rows));
    if (apart || options_.any_order) {
      double elements = 1;
      for (const auto* axes : {&outer, &rows, &columns}) {
        form.result.insert(form.result.end(), axes->begin(), axes->end());
        elements *= static_cast<double>(this->product(*axes));
      }
      for (const int axis : form.result) form.result_shape.push_back(extent(axis));
      if (!options_.any_order) form.cost += elements * (options_.many ? 0.1 : 1.0);
      if (options_.innermost >= 0 && options_.innermost != columns.back())
        form.cost += 2 * elements;
    }
    if (best_ && best_->cost <= form.cost) return;
    product.nest = nest_;
    if (a_ == 1) std::swap(product.nest.operands[0], product.nest.operands[1]);
    best_ = std::move(form);
  }

  const LoopProgram& program_;
  const LoopNest& nest_;
  const ProductOptions& options_;
  Index stored_;
  std::size_t a_ = 0;
  std::vector<int> terms_;
  std::optional<ProductForm> best_;
};

}  // namespace

std::int64_t most_in_tile(const Product& product) {
  return rows_in_tile(over(product.product(product.columns), kLanes));
}

std::int64_t Product::product(const std::vector<int>& axes) const {
  std::int64_t result = 1;
  for (const int axis : axes) result *= nest.axes[at(axis)].extent;
  return result;
}

std::optional<ProductForm> find_product(const LoopProgram& program, const LoopNest& nest,
                                        const ProductOptions& options) {
  return Finder(program, nest, options).run();
}

}  // namespace syno::training
