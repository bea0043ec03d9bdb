#include "syno/emit/training/steps.h"

#include <algorithm>
#include <utility>

#include "syno/emit/cpp/lanes.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"

namespace syno::training {
namespace {

constexpr std::int64_t kLanes = 16;
// Operands that lanes read from scattered places, or behind masks, are copied when each element is read so often.
constexpr double kLeastReads = 4;
constexpr double kLeastPartialReads = 16;
constexpr double kMostCopied = 16e6;

class Stepper {
 public:
  Stepper(LoopProgram program, const std::vector<int>& sums, int input_gradient)
      : program_(std::move(program)), sums_(sums), input_gradient_(input_gradient) {}

  Steps run() {
    inline_views();
    for (LoopNest& nest : program_.nests) nest = with_parts_as_axes(nest);
    for (std::size_t n = 0; n < program_.nests.size(); ++n) lay_out(n);
    for (const LoopNest& nest : std::vector<LoopNest>(program_.nests)) {
      const bool sum = std::find(sums_.begin(), sums_.end(), nest.store.buffer) != sums_.end();
      text_ = program_.text(nest);
      compute(merged(program_, unrotated(nest)), sum);
    }
    mark_input_gradient();
    kept_.resize(program_.buffers.size(), false);
    return {std::move(program_), std::move(steps_), std::move(kept_)};
  }

 private:
  // --- nests that only move elements are read through -------------------------------------------------------------

  void inline_views() {
    std::vector<LoopNest> kept;
    std::vector<LoopNest>& nests = program_.nests;
    for (std::size_t n = 0; n < nests.size(); ++n) {
      const LoopNest nest = nests[n];
      const bool view = nest.operands.size() == 1 && nest.outputs == nest.axes.size() &&
                        program_.buffer(nest.store.buffer).kind == BufferKind::kValue;
      if (!view) {
        kept.push_back(nest);
        continue;
      }
      for (std::size_t r = n + 1; r < nests.size(); ++r) {
        for (std::size_t o = 0; o < nests[r].operands.size(); ++o) {
          if (nests[r].operands[o].buffer == nest.store.buffer)
            nests[r] = inlined(nests[r], o, nest);
        }
      }
    }
    nests = std::move(kept);
  }

  // --- buffers ----------------------------------------------------------------------------------------------------

  int add_buffer(const std::vector<std::int64_t>& shape, bool kept = false) {
    const int added = program_.add({.shape = shape});
    kept_.resize(program_.buffers.size(), false);
    kept_.back() = kept;
    return added;
  }

  // --- axes -------------------------------------------------------------------------------------------------------

  // Axes that are read in two parts, as quotient and remainder, as two axes.
  static LoopNest with_parts_as_axes(const LoopNest& given) {
    LoopNest nest = given;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      const int axis = static_cast<int>(a);
      std::int64_t block = nest.axes[a].extent;
      for (const Access& operand : nest.operands) {
        for (const Index& index : operand.index) {
          for (const Index::Term& term : index.terms()) {
            if (term.kind == Index::Kind::kAxis || term.of->only_axis() != axis) continue;
            if (nest.axes[a].extent % term.divisor == 0) block = std::min(block, term.divisor);
          }
        }
      }
      if (block < nest.axes[a].extent) nest = split_axis(nest, axis, block);
    }
    return nest;
  }

  // --- how values lie ---------------------------------------------------------------------------------------------

  // Nobody outside sees in which order the dimensions of a value lie: in that in which it is computed, if its readers do
  // not want another.
  void lay_out(std::size_t n) {
    const LoopNest nest = program_.nests[n];
    const int buffer = nest.store.buffer;
    if (program_.buffer(buffer).kind != BufferKind::kValue) return;
    std::vector<int> dims(nest.axes.size(), -1);
    for (std::size_t d = 0; d < nest.store.index.size(); ++d) {
      const int axis = nest.store.index[d].only_axis();
      if (axis >= 0) {
        dims[at(axis)] = static_cast<int>(d);
      } else if (!nest.store.index[d].is_constant()) {
        return;
      }
    }
    const int wanted = wanted_by_readers(buffer);
    int innermost = -1;
    for (std::size_t a = 0; a < nest.outputs; ++a) {
      if (wanted >= 0 && dims[a] == wanted) innermost = static_cast<int>(a);
    }
    const auto form = find_product(program_, nest, {false, true, innermost});
    std::vector<int> order;
    if (form && form->cost < rows_cost(nest)) {
      for (const int axis : form->result) order.push_back(dims[at(axis)]);
    } else if (innermost >= 0) {
      order.push_back(wanted);
    }
    std::vector<int> all;
    for (int d = 0; d < static_cast<int>(nest.store.index.size()); ++d) {
      if (std::find(order.begin(), order.end(), d) == order.end()) all.push_back(d);
    }
    all.insert(all.end(), order.begin(), order.end());
    permute_buffer(program_, buffer, {all.begin(), all.end()});
  }

  // The dimension that a reader has under its vectors, when it stores to a tensor whose order is given; or -1.
  int wanted_by_readers(int buffer) const {
    int wanted = -1;
    for (const LoopNest& nest : program_.nests) {
      const BufferKind kind = program_.buffer(nest.store.buffer).kind;
      if (kind != BufferKind::kOutput && kind != BufferKind::kInputGradient) continue;
      const Index stored = flat_address(program_, nest, nest.store);
      for (const Access& operand : nest.operands) {
        if (operand.buffer != buffer) continue;
        for (std::size_t a = 0; a < nest.outputs; ++a) {
          if (stored.coefficient(static_cast<int>(a)) != 1) continue;
          for (std::size_t d = 0; d < operand.index.size(); ++d) {
            if (operand.index[d].coefficient(static_cast<int>(a)) == 1)
              wanted = static_cast<int>(d);
          }
        }
      }
    }
    return wanted;
  }

  // --- how a nest runs --------------------------------------------------------------------------------------------

  void compute(const LoopNest& nest, bool sum) {
    const auto form = find_product(program_, nest, {sum, false, -1});
    if (form && form->cost < rows_cost(nest)) {
      multiply(nest, *form, sum);
    } else {
      by_rows(nest, sum);
    }
  }

  // An estimate in the cycles of ProductForm::cost.
  double rows_cost(const LoopNest& nest) const {
    const cpp::RowLoops rows = cpp::row_loops(program_, nest, 0);
    double count = 1;
    for (const LoopAxis& axis : rows.nest.axes) count *= static_cast<double>(axis.extent);
    if (rows.lane < 0) return 2 * count;
    const std::int64_t length = rows.nest.axes[at(rows.lane)].extent;
    const std::int64_t vectors = (length + kLanes - 1) / kLanes;
    count *= static_cast<double>(vectors) / static_cast<double>(length);
    double cost = 0.5;
    for (std::size_t o = 0; o < rows.nest.operands.size(); ++o) {
      switch (cpp::lanes_of(program_, rows.nest, rows.lane, o)) {
        case cpp::Lanes::kPlain: cost += 0.5; break;
        case cpp::Lanes::kPartial: cost += 1.5; break;
        case cpp::Lanes::kScattered: cost += 8; break;
      }
    }
    return count * cost;
  }

  void push(Step step) {
    if (step.text.empty()) step.text = text_;
    if (step.rows) {
      step.transposed = transposed_copy(program_, *step.rows);
      if (step.transposed) step.rows.reset();
    }
    steps_.push_back(std::move(step));
  }

  void copy(Panel& panel, const std::string& name) {
    const int buffer = add_buffer(panel.shape);
    panel.fill.store.buffer = buffer;
    panel.read.buffer = buffer;
    Step step;
    step.store = buffer;
    step.text = "a copy of " + name;
    step.rows = cpp::row_loops(program_, merged(program_, panel.fill), 0);
    push(std::move(step));
  }

  void multiply(const LoopNest& nest, const ProductForm& found, bool sum) {
    ProductForm form = found;
    Product& product = form.product;
    for (const std::size_t o : {0U, 1U}) {
      if (!form.panels[o]) continue;
      copy(*form.panels[o], program_.buffer(product.nest.operands[o].buffer).name());
      product.nest.operands[o] = form.panels[o]->read;
    }
    Step step;
    step.adds = sum;
    step.store = nest.store.buffer;
    if (!form.result_shape.empty()) {
      step.store = add_buffer(form.result_shape, sum);
      product.nest.store = {step.store, axes_of(form.result), {}};
    }
    step.product = product;
    const int store = step.store;
    push(std::move(step));
    if (!form.result_shape.empty()) move_result(nest, store, form.result, sum);
  }

  static std::vector<Index> axes_of(const std::vector<int>& axes) {
    std::vector<Index> index;
    for (const int axis : axes) index.push_back(Index::axis(axis));
    return index;
  }

  // Copies a result, whose dimensions are these axes of the nest, to where the nest stores it.
  void move_result(const LoopNest& nest, int from, const std::vector<int>& axes, bool sum) {
    LoopNest move;
    move.axes.assign(nest.axes.begin(),
                     nest.axes.begin() + static_cast<std::ptrdiff_t>(nest.outputs));
    move.outputs = nest.outputs;
    move.store = nest.store;
    move.operands.push_back({from, axes_of(axes), {}});
    Step step;
    step.store = nest.store.buffer;
    step.last = sum;
    step.text = "the result in its own order";
    step.rows = cpp::row_loops(program_, merged(program_, move), 0);
    push(std::move(step));
  }

  void by_rows(const LoopNest& given, bool sum) {
    LoopNest nest = given;
    const int result = nest.store.buffer;
    if (sum) {
      // Loops over rows do not add to what is there.
      nest.store.buffer = add_buffer(program_.buffer(result).shape);
    }
    cpp::RowLoops rows = cpp::row_loops(program_, nest, 0);
    copy_operands(rows);
    Step step;
    step.store = nest.store.buffer;
    step.rows = std::move(rows);
    push(std::move(step));
    if (sum) {
      Step add;
      add.read = nest.store.buffer;
      add.store = result;
      add.adds = true;
      add.text = "the sum over all blocks";
      push(std::move(add));
    }
  }

  void copy_operands(cpp::RowLoops& rows) {
    if (rows.lane < 0) return;
    double reads = 1;
    for (const LoopAxis& axis : rows.nest.axes) reads *= static_cast<double>(axis.extent);
    bool copied = false;
    for (std::size_t o = 0; o < rows.nest.operands.size(); ++o) {
      const cpp::Lanes lanes = cpp::lanes_of(program_, rows.nest, rows.lane, o);
      if (lanes == cpp::Lanes::kPlain) continue;
      Panel panel = make_panel(program_, rows.nest, o, {rows.lane});
      const auto elements = static_cast<double>(panel.elements);
      const double least = lanes == cpp::Lanes::kPartial ? kLeastPartialReads : kLeastReads;
      if (elements > kMostCopied || reads < least * elements) continue;
      copy(panel, program_.buffer(rows.nest.operands[o].buffer).name());
      rows.nest.operands[o] = panel.read;
      copied = true;
    }
    if (copied) rows = cpp::merged_rows(program_, rows, 0);
  }

  void mark_input_gradient() {
    if (input_gradient_ < 0) return;
    std::vector<bool> needed(program_.buffers.size(), false);
    for (std::size_t s = steps_.size(); s-- > 0;) {
      Step& step = steps_[s];
      const BufferKind kind = program_.buffer(step.store).kind;
      step.for_input_gradient = kind != BufferKind::kWeightGradient && !needed[at(step.store)];
      if (step.for_input_gradient) continue;
      if (step.read >= 0) needed[at(step.read)] = true;
      const LoopNest* nest = step.nest();
      if (nest == nullptr) continue;
      for (const Access& operand : nest->operands) needed[at(operand.buffer)] = true;
    }
  }

  LoopProgram program_;
  const std::vector<int>& sums_;
  int input_gradient_;
  std::string text_;
  std::vector<Step> steps_;
  std::vector<bool> kept_;
};

}  // namespace

const LoopNest* Step::nest() const {
  if (product) return &product->nest;
  if (transposed) return &transposed->nest;
  return rows ? &rows->nest : nullptr;
}

Steps steps_of(LoopProgram program, const std::vector<int>& sums, int input_gradient) {
  return Stepper(std::move(program), sums, input_gradient).run();
}

}  // namespace syno::training
