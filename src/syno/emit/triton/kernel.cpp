#include "syno/emit/triton/kernel.h"

#include <algorithm>
#include <array>
#include <bit>

#include "syno/emit/python_text.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/checked.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::size_t kCommentColumns = 96;
// tl.dot takes no tile with a smaller side.
constexpr std::int64_t kLeastSide = 16;

bool depends_on(const Access& access, int axis) {
  const auto on_axis = [axis](const Index& index) { return index.depends_on(axis); };
  return std::any_of(access.index.begin(), access.index.end(), on_axis) ||
         std::any_of(access.conditions.begin(), access.conditions.end(),
                     [&](const Condition& condition) { return on_axis(condition.index); });
}

bool depends_on_any(const Index& index, const std::vector<int>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](int axis) { return index.depends_on(axis); });
}

Index index_of(const Index::Term& term, const Indices& indices) {
  switch (term.kind) {
    case Index::Kind::kAxis: return Index::axis(term.axis) * term.coefficient;
    case Index::Kind::kQuotient: return indices.quotient(*term.of, term.divisor) * term.coefficient;
    case Index::Kind::kRemainder: break;
  }
  return indices.remainder(*term.of, term.divisor) * term.coefficient;
}

// "a", or "(a + b)" where something follows.
std::string grouped(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

// A sum whose parts are as small tiles as can be: what depends on the terms alone, and the rest, are added up before
// they meet. Axes of terms are vectors; `view` turns them to their side of the tile ("[:, None]").
std::string spread(const Index& index, const std::vector<std::int64_t>& extents,
                   const std::vector<std::string>& names, const std::vector<int>& terms,
                   const std::string& view) {
  if (view.empty()) return index.text(names, "//");
  const Indices indices(extents);
  std::vector<int> others;
  for (int axis = 0; axis < static_cast<int>(extents.size()); ++axis) {
    if (std::find(terms.begin(), terms.end(), axis) == terms.end()) others.push_back(axis);
  }
  Index fixed(index.constant());
  Index summed;
  Index mixed;
  for (const Index::Term& term : index.terms()) {
    const Index part = index_of(term, indices);
    const bool of_terms = depends_on_any(part, terms);
    Index& sum = !of_terms ? fixed : depends_on_any(part, others) ? mixed : summed;
    sum = sum + part;
  }
  std::vector<std::string> parts;
  if (fixed != Index()) parts.push_back(grouped(fixed.text(names, "//")));
  if (summed != Index()) parts.push_back(grouped(summed.text(names, "//")) + view);
  if (mixed != Index()) {
    std::vector<std::string> viewed = names;
    for (const int axis : terms) viewed[static_cast<std::size_t>(axis)] += view;
    parts.push_back(mixed.text(viewed, "//"));
  }
  return parts.empty() ? "0" : join(parts, " + ");
}

void print_comment(Printer& out, std::string_view text) {
  while (text.size() > kCommentColumns) {
    std::size_t end = text.rfind(' ', kCommentColumns);
    if (end == std::string_view::npos || end == 0) end = text.find(' ');
    if (end == std::string_view::npos) break;
    out.line("# " + std::string(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  out.line("# " + std::string(text));
}

// The least power of two from `value` on.
std::int64_t power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

std::string times_batch(std::int64_t elements, bool batched) {
  if (!batched) return std::to_string(elements);
  return elements == 1 ? "batch" : "batch * " + std::to_string(elements);
}

std::string names_of(const std::vector<int>& axes, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const int axis : axes) parts.push_back(names[static_cast<std::size_t>(axis)]);
  return parts.empty() ? "none" : join(parts, " ");
}

}  // namespace

std::vector<int> AxisRoles::positions() const {
  std::vector<int> axes = groups;
  axes.insert(axes.end(), rows.begin(), rows.end());
  axes.insert(axes.end(), columns.begin(), columns.end());
  std::sort(axes.begin(), axes.end());
  return axes;
}

AxisRoles axis_roles(const LoopNest& nest) {
  AxisRoles roles;
  for (int axis = 0; axis < static_cast<int>(nest.axes.size()); ++axis) {
    if (static_cast<std::size_t>(axis) >= nest.outputs) {
      roles.terms.push_back(axis);
      continue;
    }
    const auto in = [axis](const Access& operand) { return depends_on(operand, axis); };
    const bool product = nest.operands.size() > 1;
    const bool in_weight = product && in(nest.operands.back());
    const bool in_data =
        std::any_of(nest.operands.begin(), nest.operands.end() - (product ? 1 : 0), in);
    (in_data && in_weight ? roles.groups : in_weight ? roles.rows : roles.columns).push_back(axis);
  }
  return roles;
}

TritonKernel::TritonKernel(const LoopProgram& program, const LoopNest& nest,
                           std::int64_t least_product)
    : program_(program),
      given_(nest),
      nest_(merged(program, without_batch(program, nest))),
      roles_(axis_roles(nest_)) {
  product_ = nest_.operands.size() > 1 && !roles_.terms.empty() &&
             extent(roles_.rows) >= least_product && extent(roles_.terms) >= least_product;
}

std::int64_t TritonKernel::extent(const std::vector<int>& axes) const {
  std::int64_t product = 1;
  for (const int axis : axes)
    product = checked_multiply(product, nest_.axes[static_cast<std::size_t>(axis)].extent,
                               "the extents of a nest");
  return product;
}

std::vector<std::string> TritonKernel::tensors() const {
  std::vector<std::string> names;
  for (const Access& operand : nest_.operands) {
    const std::string name = program_.buffer(operand.buffer).name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  names.push_back(result());
  return names;
}

std::vector<std::string> TritonKernel::parameters() const {
  std::vector<std::string> names = tensors();
  if (batched()) names.emplace_back("batch");
  names.emplace_back("device");
  if (product_) names.emplace_back("precision");
  return names;
}

void TritonKernel::print(Printer& out) const {
  LoopProgram alone = program_;
  alone.nests = {given_};
  const std::string text = alone.text();
  print_comment(out, std::string_view(text).substr(0, text.size() - 1));
  out.line("@triton.jit");
  out.line("def " + result() + "_kernel(").indent();
  for (const std::string& name : parameters()) {
    const bool constant = name == "device" || name == "precision";
    out.line(name + (constant ? ": tl.constexpr," : ","));
  }
  std::vector<std::string> sides{"POSITIONS"};
  if (product_) sides = {"ROWS", "COLUMNS"};
  if (!roles_.terms.empty()) sides.emplace_back("TERMS");
  for (const std::string& side : sides) out.line(side + ": tl.constexpr,");
  out.dedent().line("):").indent();
  if (product_) {
    print_product(out);
  } else {
    print_sum(out);
  }
  out.dedent();
  print_tiles(out);
}

// A flat number into axes, the last one the fastest.
void TritonKernel::print_parts(Printer& out, const std::string& flat, const std::vector<int>& axes,
                               bool with_batch) const {
  const std::vector<std::string> names = axis_names(nest_);
  std::int64_t stride = extent(axes);
  if (with_batch)
    out.line("image = " + flat + (stride == 1 ? "" : " // " + std::to_string(stride)));
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const auto axis = static_cast<std::size_t>(axes[a]);
    const std::int64_t whole = nest_.axes[axis].extent;
    stride /= whole;
    std::string value = flat;
    if (stride > 1) value += " // " + std::to_string(stride);
    if (a > 0 || with_batch) value += " % " + std::to_string(whole);
    out.line(names[axis] + " = " + value);
  }
}

std::string TritonKernel::address(const Access& access, const Side& side) const {
  const Index flat = flat_address(program_, nest_, access);
  std::string text = spread(flat, nest_.extents(), axis_names(nest_), roles_.terms, side.view);
  bool along_flat = depends_on_any(flat, side.axes);
  const Buffer& buffer = program_.buffer(access.buffer);
  if (batched() && !buffer.from_weights) {
    const std::int64_t elements = buffer.elements() / buffer.shape[0];
    const std::string image = elements == 1 ? "image" : std::to_string(elements) + "*image";
    text = text == "0" ? image : image + " + " + text;
    along_flat = true;
  }
  // Every address is a whole tile, as Triton wants it of a masked load.
  if (!along_flat) text += " + 0*" + side.flat;
  if (side.with_terms && !depends_on_any(flat, roles_.terms)) text += " + 0*term" + side.view;
  return text;
}

std::string TritonKernel::load(Printer& out, const Access& access, const Side& side) const {
  const std::string name = program_.buffer(access.buffer).name();
  std::string inside = side.flat + " < " + side.bound;
  if (side.with_terms)
    inside = "(" + inside + ") & (term < " + std::to_string(extent(roles_.terms)) + ")" + side.view;
  out.line(name + "_in = " + inside);
  const std::vector<std::string> names = axis_names(nest_);
  const Indices indices(nest_.extents());
  for (const Condition& condition : access.conditions) {
    const Range known = indices.range(condition.index);
    std::string index = spread(condition.index, nest_.extents(), names, roles_.terms, side.view);
    // Of a group alone: a number, which must become a tile.
    if (!depends_on_any(condition.index, side.axes) &&
        !depends_on_any(condition.index, roles_.terms))
      index += " + 0*" + side.flat;
    if (known.least < 0) out.line(name + "_in &= " + index + " >= 0");
    if (known.most >= condition.extent)
      out.line(name + "_in &= " + index + " < " + std::to_string(condition.extent));
  }
  out.line(name + "_at = " + address(access, side));
  return "tl.load(" + name + " + " + name + "_at, " + name + "_in, 0.0)";
}

void TritonKernel::print_product(Printer& out) const {
  const std::vector<std::string> names = axis_names(nest_);
  const std::string rows = std::to_string(extent(roles_.rows));
  const std::string columns = times_batch(extent(roles_.columns), batched());
  const std::string terms = std::to_string(extent(roles_.terms));
  out.line("# Rows: " + names_of(roles_.rows, names) + "; columns: " + (batched() ? "image " : "") +
           names_of(roles_.columns, names) + "; terms: " + names_of(roles_.terms, names) + ".");
  if (!roles_.groups.empty()) {
    out.line("group = tl.program_id(1)");
    print_parts(out, "group", roles_.groups, false);
  }
  out.line("tile = tl.program_id(0)");
  out.line("down = tl.cdiv(" + rows + ", ROWS)");
  out.line("row = (tile % down * ROWS + tl.arange(0, ROWS))[:, None]");
  out.line("column = (tile // down * COLUMNS + tl.arange(0, COLUMNS))[None, :]");
  print_parts(out, "row", roles_.rows, false);
  print_parts(out, "column", roles_.columns, batched());
  out.line("total = tl.zeros((ROWS, COLUMNS), tl.float32)");
  out.line("for start in range(0, " + terms + ", TERMS):").indent();
  out.line("term = start + tl.arange(0, TERMS)");
  print_parts(out, "term", roles_.terms, false);
  const Side across{"column", columns, "[:, None]", roles_.columns, true};
  std::vector<std::string> data;
  for (auto operand = nest_.operands.begin(); operand != nest_.operands.end() - 1; ++operand)
    data.push_back(load(out, *operand, across));
  const std::string weight =
      load(out, nest_.operands.back(), {"row", rows, "[None, :]", roles_.rows, true});
  out.line("left = " + weight);
  out.line("right = " + data.front());
  for (std::size_t d = 1; d < data.size(); ++d) out.line("right *= " + data[d]);
  out.line("total += tl.dot(left, right, input_precision=precision)").dedent();
  print_store(out, "total", {"column", columns, "", roles_.columns, false});
}

void TritonKernel::print_sum(Printer& out) const {
  const std::string positions = times_batch(extent(roles_.positions()), batched());
  const bool sums = !roles_.terms.empty();
  const Side side{"position", positions, "", roles_.positions(), sums};
  out.line("position = (tl.program_id(0) * POSITIONS + tl.arange(0, POSITIONS))[None, :]");
  print_parts(out, "position", roles_.positions(), batched());
  if (sums) {
    const std::string terms = std::to_string(extent(roles_.terms));
    out.line("total = tl.zeros((TERMS, POSITIONS), tl.float32)");
    out.line("for start in range(0, " + terms + ", TERMS):").indent();
    out.line("term = (start + tl.arange(0, TERMS))[:, None]");
    print_parts(out, "term", roles_.terms, false);
  }
  std::vector<std::string> factors;
  for (const Access& operand : nest_.operands) {
    factors.push_back("factor" + std::to_string(factors.size()));
    out.line(factors.back() + " = " + load(out, operand, side) + ".to(tl.float32)");
  }
  if (sums) out.line("total += " + join(factors, " * ")).dedent();
  print_store(out, sums ? "tl.sum(total, 0, keep_dims=True)" : join(factors, " * "), side);
}

void TritonKernel::print_store(Printer& out, const std::string& value, Side side) const {
  side.with_terms = false;
  side.view = "";
  std::string inside = side.flat + " < " + side.bound;
  std::string at = address(nest_.store, side);
  if (product_) {
    inside = "(row < " + std::to_string(extent(roles_.rows)) + ") & (" + inside + ")";
    if (!depends_on_any(flat_address(program_, nest_, nest_.store), roles_.rows)) at += " + 0*row";
  }
  out.line(result() + "_in = " + inside);
  out.line(result() + "_at = " + at);
  const std::string scale = nest_.scale == 1 ? "" : std::to_string(nest_.scale) + " * ";
  out.line("tl.store(" + result() + " + " + result() + "_at, " + scale + value + ", " + result() +
           "_in)");
}

// Sides of tiles and warps, the first for machines on which nothing is tried.
void TritonKernel::print_tiles(Printer& out) const {
  std::vector<std::vector<std::int64_t>> choices;
  const auto add = [&](std::vector<std::int64_t> tile) {
    if (std::find(choices.begin(), choices.end(), tile) == choices.end())
      choices.push_back(std::move(tile));
  };
  const std::int64_t terms = power_of_two(extent(roles_.terms));
  if (product_) {
    const std::int64_t rows = std::max(kLeastSide, power_of_two(extent(roles_.rows)));
    const std::int64_t columns =
        batched() ? 128 : std::max(kLeastSide, power_of_two(extent(roles_.columns)));
    static constexpr std::array<std::array<std::int64_t, 4>, 8> kTiles{{{64, 64, 32, 4},
                                                                        {32, 64, 32, 4},
                                                                        {32, 32, 32, 2},
                                                                        {16, 64, 64, 4},
                                                                        {64, 128, 32, 4},
                                                                        {128, 64, 32, 4},
                                                                        {128, 128, 32, 8},
                                                                        {64, 32, 64, 4}}};
    for (const auto& tile : kTiles)
      add({std::min(tile[0], rows), std::min(tile[1], columns),
           std::min(tile[2], std::max(kLeastSide, terms)), tile[3]});
  } else if (!roles_.terms.empty()) {
    static constexpr std::array<std::array<std::int64_t, 3>, 6> kTiles{
        {{128, 16, 4}, {256, 4, 4}, {256, 1, 4}, {512, 1, 4}, {32, 64, 4}, {16, 256, 4}}};
    for (const auto& tile : kTiles) add({tile[0], std::min(tile[1], terms), tile[2]});
  } else {
    choices = {{1024, 4}, {256, 4}, {512, 4}, {2048, 8}};
  }
  out.line().line();
  std::vector<std::string> texts;
  for (const auto& tile : choices) texts.push_back("    " + tuple_text(numbers_text(tile)) + ",");
  out.line(result() + "_tuned = tuned(").indent();
  out.line(result() + "_kernel,").line("[");
  for (const std::string& text : texts) out.line(text);
  out.line("],").dedent().line(")");
}

void TritonKernel::print_call(Printer& out) const {
  const Buffer& buffer = program_.buffer(nest_.store.buffer);
  std::vector<std::string> shape = numbers_text(buffer.shape);
  if (batched()) shape[0] = "batch";
  out.line(result() + " = torch.empty(" + tuple_text(shape) + ", dtype=x.dtype, device=x.device)");
  const auto tiles = [](const std::string& elements, const char* side) {
    return "triton.cdiv(" + elements + ", tile[\"" + side + "\"])";
  };
  std::string grid;
  if (product_) {
    grid = tiles(std::to_string(extent(roles_.rows)), "ROWS") + " * " +
           tiles(times_batch(extent(roles_.columns), batched()), "COLUMNS");
    out.line("grid = lambda tile: (").indent();
    out.line(grid + ",").line(std::to_string(extent(roles_.groups)) + ",").dedent().line(")");
  } else {
    grid = tiles(times_batch(extent(roles_.positions()), batched()), "POSITIONS");
    out.line("grid = lambda tile: (" + grid + ",)");
  }
  out.line(result() + "_tuned[grid](" + join(parameters(), ", ") + ")");
}

}  // namespace syno
