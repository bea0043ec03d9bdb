#include "syno/emit/cpp/schedule.h"

#include <algorithm>

#include "syno/emit/cpp/epilogue.h"
#include "syno/emit/cpp/interface.h"
#include "syno/emit/cpp/lanes.h"
#include "syno/emit/cpp/layout.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/error.h"

namespace syno::cpp {
namespace {

// A producer is computed inside of a panel where it costs at most this share of the contraction's MACs.
constexpr double kMostInlineShare = 0.05;
// A producer of so few MACs an element is summed in registers where its result is large.
constexpr std::int64_t kMostFusedSum = 32;
// A contraction of more rows is better off with the producer's result in memory.
constexpr std::int64_t kMostFusedRows = 16;
// Lanes that fill whole vectors of this length are never merged with other axes.
constexpr std::int64_t kShortLane = 16;
// Operands that lanes read from scattered places are copied when each element is read so often, up to so many elements.
constexpr double kLeastReads = 4;
constexpr double kLeastPartialReads = 16;
constexpr double kMostGathered = 16e6;
constexpr double kMostGatheredWeight = 1e6;
// Of products of up to 255 * 128 in 31 bits.
constexpr std::int64_t kMostCodeTerms = ((std::int64_t{1} << 31) - 1) / (std::int64_t{255} * 128);

// Axes that an operand depends on, the lane last. What is read together lies together; only a lane that fills its
// vectors badly has axes of the result beside it, with which it may be merged.
std::vector<int> axes_of(const LoopNest& nest, std::size_t operand, int lane) {
  std::vector<int> outputs;
  std::vector<int> sums;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const int axis = static_cast<int>(a);
    if (axis != lane && depends_on(nest.operands[operand], axis))
      (a < nest.outputs ? outputs : sums).push_back(axis);
  }
  const std::int64_t length = nest.axes[at(lane)].extent;
  const bool is_short = length % kShortLane != 0 && length < 3 * kShortLane;
  std::vector<int> axes = is_short ? sums : outputs;
  const std::vector<int>& last = is_short ? outputs : sums;
  axes.insert(axes.end(), last.begin(), last.end());
  axes.push_back(lane);
  return axes;
}

// A copy of an operand in the order of the axes, zeros where its conditions fail.
LoopNest gathered(const LoopNest& nest, std::size_t operand, const std::vector<int>& axes) {
  LoopNest copy;
  std::vector<Index> values(nest.axes.size());
  for (const int axis : axes) {
    const int place = static_cast<int>(copy.axes.size());
    copy.axes.push_back(nest.axes[at(axis)]);
    copy.store.index.push_back(Index::axis(place));
    values[at(axis)] = Index::axis(place);
  }
  copy.outputs = copy.axes.size();
  copy.operands.push_back(substituted(nest.operands[operand], copy.extents(), values));
  return copy;
}

class Scheduler {
 public:
  Scheduler(const Plan& plan, const CppOptions& options)
      : cache_floats_(options.cache_floats),
        formats_(parse_formats(options)),
        tuning_(parse_tuning(options.tuning)),
        program_(loop_program(plan)) {
    set_order("input_order", program_.input, options.input_order);
    set_order("output_order", program_.output, options.output_order);
    elements_.assign(program_.buffers.size(), Element::kFloat32);
    elements_[at(program_.input)] = formats_.input;
    elements_[at(program_.output)] = formats_.output;
    for (const auto& each : tuning_) check_nest(each.first);
    if (formats_.values == Element::kCode) find_codes();
  }

  Schedule run() {
    lay_out();
    schedule();
    return {formats_, std::move(program_), std::move(elements_), std::move(phases_)};
  }

 private:
  void check_nest(int nest) const {
    if (at(nest) < program_.nests.size()) return;
    throw UserError("the tuning has the nest " + std::to_string(nest) +
                    "\n  expected: a number below " + std::to_string(program_.nests.size()));
  }

  // Contractions of codes whose results others read give codes, too.
  void find_codes() {
    for (const LoopNest& nest : program_.nests) {
      const int buffer = nest.store.buffer;
      if (program_.buffer(buffer).kind != BufferKind::kValue ||
          program_.buffer(buffer).from_weights)
        continue;
      const LoopNest one = merged(program_, without_batch(program_, nest));
      const std::optional<Contraction> found = matched(one, {});
      const bool is_product = found && found->precision == Precision::kInt8;
      if (is_product || depthwise(one)) elements_[at(buffer)] = Element::kCode;
    }
  }

  // --- how intermediate tensors lie -------------------------------------------------------------------------------

  // From the last to the first: what reads a tensor knows by then how it writes.
  void lay_out() {
    for (std::size_t p = program_.nests.size(); p-- > 0;) {
      const int buffer = program_.nests[p].store.buffer;
      if (program_.buffer(buffer).kind != BufferKind::kValue) continue;
      std::vector<const LoopNest*> readers;
      for (const LoopNest& nest : program_.nests) {
        for (const Access& operand : nest.operands) {
          if (operand.buffer == buffer) readers.push_back(&nest);
        }
      }
      if (readers.size() != 1) continue;
      const std::vector<std::size_t> order =
          elements_[at(buffer)] == Element::kCode
              ? layout_of_codes(program_, program_.nests[p], *readers[0])
              : layout(program_, program_.nests[p], *readers[0], cache_floats_);
      if (!order.empty()) permute_buffer(program_, buffer, order);
    }
  }

  void set_order(const char* what, int buffer, const std::vector<int>& order) {
    if (order.empty()) return;
    check_order(what, order, program_.buffer(buffer).shape.size(), program_.batched);
    permute_buffer(program_, buffer, {order.begin(), order.end()});
  }

  // --- what runs how ----------------------------------------------------------------------------------------------

  void schedule() {
    std::vector<LoopNest> nests;
    for (const LoopNest& nest : program_.nests) nests.push_back(without_batch(program_, nest));
    std::vector<bool> done(nests.size(), false);
    std::vector<Phase> reversed;
    for (std::size_t n = nests.size(); n-- > 0;) {
      if (done[n]) continue;
      Phase phase;
      phase.store = nests[n].store.buffer;
      phase.text = program_.text(program_.nests[n]);
      const LoopNest nest = merged(program_, nests[n]);
      phase.nest = static_cast<int>(n);
      phase.macs = nests[n].macs();
      phase.tuning = tuning_of(phase.nest);
      const NestTuning& tuning = phase.tuning;
      phase.contraction = matched(nest, tuning);
      phase.possible = phase.contraction;
      if (!phase.possible && formats_.precision == Precision::kFloat32) {
        NestTuning thin = tuning;
        thin.form = NestTuning::Form::kProduct;
        phase.possible = matched(nest, thin);
      }
      if (tuning.form == NestTuning::Form::kRows) phase.contraction.reset();
      std::vector<Phase> copies;
      if (!phase.contraction) phase.depthwise = depthwise(nest);
      if (phase.depthwise) {
        reversed.push_back(std::move(phase));
        continue;
      }
      const bool is_wide = phase.contraction && (tuning.form == NestTuning::Form::kProduct ||
                                                 phase.contraction->row_count() > kMostFusedRows);
      if (!is_wide) {
        fuse_rows(phase, nests, n, done);
        if (phase.rows) phase.contraction.reset();
      }
      if (!phase.contraction) {
        const Element target = elements_[at(phase.store)];
        if (!phase.rows)
          phase.rows = row_loops(program_, merged(program_, unrotated(nests[n])), 0, target);
        copies = gather_operands(phase, 0);
      } else if (!phase.contraction->in_place) {
        copies = fill_panel(phase, nests, done);
      }
      reversed.push_back(std::move(phase));
      for (Phase& copy : copies) reversed.push_back(std::move(copy));
    }
    phases_.assign(std::make_move_iterator(reversed.rbegin()),
                   std::make_move_iterator(reversed.rend()));
  }

  NestTuning tuning_of(int nest) const {
    const auto found = tuning_.find(nest);
    return found == tuning_.end() ? NestTuning{} : found->second;
  }

  // In int8 only what reads the codes of the input.
  std::optional<Contraction> matched(const LoopNest& nest, const NestTuning& tuning) const {
    Precision precision = formats_.precision;
    Element data = Element::kFloat32;
    bool integers = nest.scale == 1;
    for (const Access& operand : nest.operands) {
      const Buffer& buffer = program_.buffer(operand.buffer);
      if (!buffer.from_weights)
        data = elements_[at(operand.buffer)];
      else
        integers = integers && buffer.kind == BufferKind::kWeight;
    }
    if (precision == Precision::kInt8 && (data != Element::kCode || !integers))
      precision = Precision::kFloat32;
    if (precision == Precision::kFloat32 && data != Element::kFloat32) return std::nullopt;
    std::optional<Contraction> found =
        match_contraction(program_, nest, cache_floats_, precision, data, tuning);
    if (found && !is_separable(*found)) return std::nullopt;
    if (found && precision == Precision::kInt8) check_sums(*found);
    return found;
  }

  // In int8 where it reads codes.
  std::optional<Depthwise> depthwise(const LoopNest& nest) const {
    if (formats_.precision != Precision::kInt8) return std::nullopt;
    std::optional<Depthwise> found = match_depthwise(program_, nest);
    if (found && elements_[at(nest.operands[found->data].buffer)] == Element::kCode) return found;
    return std::nullopt;
  }

  // Sums of codes are int32, and so are those of their parts in any order modulo 2^32.
  static void check_sums(const Contraction& c) {
    const std::int64_t terms = c.term_count() * c.tap_count();
    if (terms <= kMostCodeTerms) return;
    throw UserError("sums of " + std::to_string(terms) +
                    " products in int8 may exceed 32 bits\n  expected: at most " +
                    std::to_string(kMostCodeTerms) + " terms");
  }

  // Sums a producer in registers where its result is large, or lies badly for the consumer.
  void fuse_rows(Phase& phase, const std::vector<LoopNest>& nests, std::size_t n,
                 std::vector<bool>& done) {
    const LoopNest consumer = unrotated(nests[n]);
    if (program_.buffer(consumer.store.buffer).from_weights) return;
    for (std::size_t o = 0; o < consumer.operands.size(); ++o) {
      const int read = consumer.operands[o].buffer;
      const Buffer& buffer = program_.buffer(read);
      if (buffer.from_weights || buffer.kind != BufferKind::kValue) continue;
      for (std::size_t p = 0; p < n; ++p) {
        if (done[p] || nests[p].store.buffer != read) continue;
        std::int64_t elements = 1;
        for (std::size_t a = 0; a < nests[p].outputs; ++a) elements *= nests[p].axes[a].extent;
        const std::int64_t sum = nests[p].macs() / std::max<std::int64_t>(1, elements);
        if (sum > kMostFusedSum || elements < cache_floats_) continue;
        phase.rows = fused_row_loops(program_, consumer, o, nests[p], elements_[at(phase.store)]);
        if (!phase.rows) continue;
        phase.text = program_.text(program_.nests[p]) + "\n" + phase.text;
        done[p] = true;
        return;
      }
    }
  }

  // Copies of those operands that are read often and lie badly, in the order in which the rows read them.
  std::vector<Phase> gather_operands(Phase& phase, std::size_t kept) {
    RowLoops& rows = *phase.rows;
    std::vector<Phase> copies;
    if (rows.lane < 0) return copies;
    double reads = 1;
    for (const LoopAxis& axis : rows.nest.axes) reads *= static_cast<double>(axis.extent);
    for (std::size_t o = 0; o < rows.nest.operands.size(); ++o) {
      const Lanes lanes = lanes_of(program_, rows.nest, rows.lane, o);
      if (lanes == Lanes::kPlain) continue;
      const std::vector<int> axes = axes_of(rows.nest, o, rows.lane);
      LoopNest copy = gathered(rows.nest, o, axes);
      double elements = 1;
      for (const LoopAxis& axis : copy.axes) elements *= static_cast<double>(axis.extent);
      const bool from_weights = program_.buffer(rows.nest.operands[o].buffer).from_weights;
      const double most = from_weights ? kMostGatheredWeight : kMostGathered;
      const double least = lanes == Lanes::kPartial ? kLeastPartialReads : kLeastReads;
      if (elements > most || reads < least * elements) continue;
      copy.store.buffer = add_panel(copy.extents(), from_weights, Element::kFloat32);
      Phase filled;
      filled.store = copy.store.buffer;
      filled.text = "in the order in which it is read: " + program_.text(copy);
      filled.rows = row_loops(program_, copy, 0);
      copies.push_back(std::move(filled));
      Access read{copy.store.buffer, {}, {}};
      for (const int axis : axes) read.index.push_back(Index::axis(axis));
      rows.nest.operands[o] = std::move(read);
    }
    if (!copies.empty()) rows = merged_rows(program_, rows, kept);
    return copies;
  }

  int add_panel(const std::vector<std::int64_t>& shape, bool from_weights, Element element) {
    elements_.push_back(element);
    return program_.add({.shape = shape, .from_weights = from_weights});
  }

  bool is_separable(const Contraction& c) const {
    const Index stored = flat_address(program_, c.nest, c.nest.store);
    const std::size_t count = c.nest.axes.size();
    std::vector<int> outer = c.groups;
    outer.insert(outer.end(), c.slices.begin(), c.slices.end());
    return part_of(stored, outer, count) && part_of(stored, c.rows, count) &&
           part_of(stored, c.columns, count);
  }

  std::vector<Phase> fill_panel(Phase& phase, const std::vector<LoopNest>& nests,
                                std::vector<bool>& done) {
    Contraction& c = *phase.contraction;
    phase.panel = add_panel(c.panel_shape, false, panel_element(c.precision));
    c.fill.store.buffer = phase.panel;
    const int read = c.fill.operands[0].buffer;
    for (std::size_t p = 0; p < nests.size(); ++p) {
      if (done[p] || nests[p].store.buffer != read) continue;
      const double repeats = static_cast<double>(program_.buffer(phase.panel).elements()) /
                             static_cast<double>(program_.buffer(read).elements());
      const double share =
          static_cast<double>(nests[p].macs()) / static_cast<double>(c.nest.macs());
      // What is rounded to codes is computed once, where it is.
      const bool codes = elements_[at(read)] == Element::kCode;
      if (codes || repeats > kMostRepeats || share > kMostInlineShare) break;
      c.fill = inlined(c.fill, 0, nests[p]);
      done[p] = true;
      break;
    }
    const std::size_t kept =
        c.private_panel ? (c.blocks > 1 ? 1 : 0) + c.groups.size() + c.slices.size() : 0;
    c.fill = c.private_panel ? merged_outputs(program_, c.fill, kept) : merged(program_, c.fill);
    const bool is_copy = c.precision == Precision::kInt8 && c.fill.operands.size() == 1 &&
                         elements_[at(c.fill.operands[0].buffer)] == Element::kCode &&
                         c.fill.operands[0].buffer == read;
    phase.rows = row_loops(program_, c.fill, kept, panel_element(c.precision), is_copy);
    return c.fill.macs() > 0 ? gather_operands(phase, kept) : std::vector<Phase>{};
  }

  std::int64_t cache_floats_;
  Formats formats_;
  Tuning tuning_;
  LoopProgram program_;
  std::vector<Element> elements_;
  std::vector<Phase> phases_;
};

}  // namespace

std::optional<Index> part_of(const Index& index, const std::vector<int>& axes,
                             std::size_t axis_count) {
  Index result;
  for (const Index::Term& term : index.terms()) {
    bool inside = false;
    bool outside = false;
    for (std::size_t a = 0; a < axis_count; ++a) {
      const int axis = static_cast<int>(a);
      const bool depends =
          term.kind == Index::Kind::kAxis ? term.axis == axis : term.of->depends_on(axis);
      if (!depends) continue;
      const bool listed = std::find(axes.begin(), axes.end(), axis) != axes.end();
      (listed ? inside : outside) = true;
    }
    if (inside && outside) return std::nullopt;
    if (inside) result = result + Index::term(term);
  }
  return result;
}

Schedule schedule(const Plan& plan, const CppOptions& options) {
  return Scheduler(plan, options).run();
}

bool columns_side_by_side(const LoopProgram& program, const Contraction& c) {
  const LoopNest& nest = c.nest;
  const Index columns =
      *part_of(flat_address(program, nest, nest.store), c.columns, nest.axes.size());
  bool side_by_side = columns.is_affine();
  std::int64_t next = 1;
  for (std::size_t i = c.columns.size(); i-- > 0;) {
    side_by_side = side_by_side && columns.coefficient(c.columns[i]) == next;
    next *= nest.axes[at(c.columns[i])].extent;
  }
  const bool in_data =
      c.in_place ? c.precision == Precision::kFloat32 && c.point == 1 : !c.terms_inside;
  return side_by_side && in_data;
}

}  // namespace syno::cpp
