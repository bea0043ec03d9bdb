#include "syno/emit/cpp/print_products.h"

#include <algorithm>

#include "syno/emit/cpp/print_rows.h"
#include "syno/emit/cpp/schedule.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/text.h"

namespace syno::cpp {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

void constant(Printer& out, const std::string& name, std::int64_t value) {
  out.line("static constexpr long " + name + " = " + number(value) + ";");
}

void flag(Printer& out, const std::string& name, bool value) {
  out.line("static constexpr bool " + name + " = " + (value ? "true" : "false") + ";");
}

// A function of a flattened index of some axes.
void place_function(Printer& out, const std::string& head, const LoopNest& nest,
                    const std::vector<int>& axes, const std::string& flat, const Index& value) {
  if (value.is_constant()) {
    out.line("static long " + head + "(long) { return " + number(value.constant()) + "; }");
    return;
  }
  const bool simple = axes.size() == 1;
  if (simple) {
    std::vector<std::string> names(nest.axes.size(), "?");
    names[at(axes[0])] = flat;
    out.line("static long " + head + "(long " + flat + ") { return " + value.text(names) + "; }");
    return;
  }
  out.line("static long " + head + "(long " + flat + ") {").indent();
  print_decode(out, nest, axes, flat);
  out.line("return " + value.text(c_names(nest)) + ";");
  out.dedent().line("}");
}

// Whether sums are multiplied with the scale of what is read: that of x is in the epilogue's.
void print_scaled(Printer& out, const Buffer& data) {
  flag(out, "kScaled", data.kind == BufferKind::kValue);
}

// How many neighbouring rows lie side by side in the result.
std::int64_t row_run(const Contraction& c, const Index& rows) {
  std::int64_t run = 1;
  for (std::size_t r = c.rows.size(); r-- > 0 && rows.is_affine();) {
    if (rows.coefficient(c.rows[r]) != run) break;
    run *= c.nest.axes[at(c.rows[r])].extent;
    if (c.precision != Precision::kInt8 && c.rows.size() > 1) return 1;
  }
  return run;
}

// type Chosen: tiles that a tuning chooses.
void print_tiles(Printer& out, const NestTuning& tuning) {
  if (!tuning.has_tiles()) return;
  const auto text = [](auto value) { return std::to_string(static_cast<std::int64_t>(value)); };
  out.line("using Chosen = Tiles<" + text(tuning.over) + ", " + text(tuning.rows) + ", " +
           text(tuning.width) + ", " + text(tuning.order) + ">;");
}

void tap_function(Printer& out, const Contraction& c) {
  std::vector<std::string> places;
  for (std::int64_t t = 0; t < c.tap_count(); ++t) {
    std::int64_t rest = t;
    std::int64_t place = 0;
    for (std::size_t a = c.taps.size(); a-- > 0;) {
      const std::int64_t extent = c.nest.axes[at(c.taps[a])].extent;
      const Contraction::Slide& slide = c.slides[a];
      const std::int64_t tap = rest % extent;
      place += tap / slide.phases * slide.step * c.panel_step(slide.column) +
               (slide.kept ? tap : tap % slide.phases) * slide.phase_elements;
      rest /= extent;
    }
    places.push_back(number(place));
  }
  out.line("static constexpr long kPlaces[] = {" + join(places, ", ") + "};");
  out.line("static constexpr long tap(long t) { return kPlaces[t]; }");
}

void weight_function(Printer& out, const LoopProgram& program, const Contraction& c) {
  const Access& weight = c.nest.operands[c.weight];
  out.line(
      "static float weight([[maybe_unused]] const float* w, [[maybe_unused]] long g, "
      "[[maybe_unused]] long m,");
  out.line("                    [[maybe_unused]] long k, [[maybe_unused]] long t) {").indent();
  print_decode(out, c.nest, c.groups, "g");
  print_decode(out, c.nest, c.rows, "m");
  print_decode(out, c.nest, c.terms, "k");
  print_decode(out, c.nest, c.taps, "t");
  const std::vector<std::string> names = c_names(c.nest);
  for (const Condition& condition : weight.conditions) {
    out.line("if (static_cast<unsigned long>(" + condition.index.text(names) +
             ") >= " + number(condition.extent) + ") return 0.0f;");
  }
  out.line("return w[" + flat_address(program, c.nest, weight).text(names) + "];");
  out.dedent().line("}");
}

}  // namespace

void print_contraction(Printer& out, const LoopProgram& program, const Contraction& c,
                       const std::string& name, const NestTuning& tuning, int channel) {
  const LoopNest& nest = c.nest;
  const std::size_t count = nest.axes.size();
  const Index stored = flat_address(program, nest, nest.store);
  out.line("struct " + name + " {").indent();
  constant(out, "kGroups", c.product(c.groups));
  constant(out, "kSlices", c.slice_count());
  constant(out, "kRows", c.row_count());
  constant(out, "kTerms", c.term_count());
  constant(out, "kTaps", c.tap_count());
  constant(out, "kBlock", c.block_columns());
  constant(out, "kPoint", c.point * c.line_stride);
  constant(out, "kLine", c.line_columns());
  constant(out, "kLineStep",
           c.line_columns() < c.block_columns() ? c.panel_step(c.columns.size() - 2) : 0);
  constant(out, "kPairWidth", c.paired ? c.width() : 0);
  if (c.paired) constant(out, "kPairRows", c.block_rows);
  out.line("using Words = " + std::string(words_type(c.precision)) + ";");
  flag(out, "kInPlace", c.in_place);
  out.line("static constexpr float kScale = " + number(nest.scale) + ";");

  const Index columns = *part_of(stored, c.columns, count);
  const Index rows = *part_of(stored, c.rows, count);
  const std::int64_t run = row_run(c, rows);
  const bool rows_side_by_side = run == c.row_count();
  flag(out, "kColumnsAreContiguous", columns_side_by_side(program, c));
  print_tiles(out, tuning);
  flag(out, "kRowsAreContiguous", rows_side_by_side);
  constant(out, "kRowRun", run);
  if (c.precision == Precision::kInt8)
    print_scaled(out, program.buffer(nest.operands[c.data].buffer));
  else
    flag(out, "kScaled", false);

  const bool by_rows =
      channel < 0 || std::none_of(
                         c.columns.begin(), c.columns.end(),
                         [&](int axis) { return nest.store.index[at(channel)].depends_on(axis); });
  flag(out, "kChannelOfRow", by_rows);

  std::vector<int> outer = c.groups;
  outer.insert(outer.end(), c.slices.begin(), c.slices.end());
  if (c.in_place) {
    const Index address = flat_address(program, nest, nest.operands[c.data]);
    place_function(out, "data", nest, outer, "s",
                   *part_of(address, outer, count) + Index(address.constant()));
    place_function(out, "term", nest, c.terms, "k", *part_of(address, c.terms, count));
  } else {
    const std::int64_t step = c.terms_inside ? 1 : c.block_elements() / c.term_count();
    out.line("static long data(long s) { return s * " + number(c.block_elements()) + "; }");
    out.line("static long term(long k) { return k * " + number(step) + "; }");
  }
  tap_function(out, c);
  place_function(out, "row", nest, c.rows, "m", rows);
  place_function(out, "column", nest, c.columns, "n", columns);
  place_function(out, "result", nest, outer, "s",
                 *part_of(stored, outer, count) + Index(stored.constant()));
  out.line("static long group(long s) { return s / " + number(c.product(c.slices)) + "; }");
  weight_function(out, program, c);
  out.dedent().line("};");
}

void print_depthwise(Printer& out, const LoopProgram& program, const Depthwise& d,
                     const std::string& name, int channel) {
  out.line("struct " + name + " {").indent();
  constant(out, "kChannels", d.extent(d.lane));
  for (const bool rows : {true, false}) {
    const SlidingAxis& axis = rows ? d.rows : d.columns;
    const std::string side = rows ? "kRow" : "kColumn";
    constant(out, side + "s", d.extent(axis.axis));
    constant(out, rows ? "kTapRows" : "kTapColumns", d.extent(axis.tap));
    constant(out, side + "Step", axis.step);
    constant(out, side + "Dilation", axis.dilation);
    constant(out, side + "First", axis.first);
    constant(out, side + "Extent", axis.axis < 0 ? 1 : axis.extent);
    constant(out, side + "Data", axis.data);
    constant(out, side + "Stored", axis.stored);
  }
  constant(out, "kDataStart", d.data_start);
  constant(out, "kStoredStart", d.stored_start);
  print_scaled(out, program.buffer(d.nest.operands[d.data].buffer));
  const bool by_lane = channel < 0 || !d.nest.store.index[at(channel)].depends_on(d.columns.axis);
  flag(out, "kChannelOfRow", by_lane);
  std::vector<std::string> names(d.nest.axes.size(), "0");
  names[at(d.lane)] = "c";
  if (d.rows.tap >= 0) names[at(d.rows.tap)] = "a";
  if (d.columns.tap >= 0) names[at(d.columns.tap)] = "b";
  out.line(
      "static float weight(const float* w, long c, [[maybe_unused]] long a, [[maybe_unused]] "
      "long b) {");
  out.indent()
      .line("return w[" + flat_address(program, d.nest, d.nest.operands[d.weight]).text(names) +
            "];")
      .dedent()
      .line("}");
  out.dedent().line("};");
}

}  // namespace syno::cpp
