#include "syno/emit/training/transposed.h"

#include <algorithm>

#include "syno/emit/cpp/lanes.h"
#include "syno/emit/cpp/print_rows.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/text.h"

namespace syno::training {
namespace {

// Shorter sides leave most of a square empty.
constexpr std::int64_t kLeastRead = 4;
constexpr std::int64_t kLeastStored = 2;

}  // namespace

std::int64_t TransposedCopy::count() const {
  std::int64_t count = 1;
  for (const int axis : outer) count *= nest.axes[at(axis)].extent;
  return count;
}

std::optional<TransposedCopy> transposed_copy(const LoopProgram& program,
                                              const cpp::RowLoops& rows) {
  const LoopNest& nest = rows.nest;
  if (nest.operands.size() != 1 || nest.scale != 1 || nest.outputs != nest.axes.size() ||
      rows.lane < 0 || nest.axes[at(rows.lane)].extent < kLeastStored)
    return std::nullopt;
  const Index stored = flat_address(program, nest, nest.store);
  const bool side_by_side = cpp::is_linear(stored, rows.lane) && stored.coefficient(rows.lane) == 1;
  if (!side_by_side || cpp::lanes_of(program, nest, rows.lane, 0) != cpp::Lanes::kScattered)
    return std::nullopt;
  const Access& access = nest.operands[0];
  const Index address = flat_address(program, nest, access);
  TransposedCopy copy{nest, -1, rows.lane, {}};
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const int axis = static_cast<int>(a);
    const bool neighbours = axis != rows.lane && cpp::is_strided(address, access, axis) &&
                            address.coefficient(axis) == 1;
    if (neighbours && nest.axes[a].extent >= kLeastRead &&
        (copy.read < 0 || nest.axes[a].extent > nest.axes[at(copy.read)].extent))
      copy.read = axis;
  }
  if (copy.read < 0) return std::nullopt;
  for (const int axis : rows.outer) {
    if (axis != copy.read) copy.outer.push_back(axis);
  }
  if (rows.tile >= 0 && rows.tile != copy.read) copy.outer.push_back(rows.tile);
  return copy;
}

void print_transposed(Printer& out, const LoopProgram& program, const TransposedCopy& copy,
                      const std::string& name) {
  const LoopNest& nest = copy.nest;
  const Access& access = nest.operands[0];
  const std::vector<std::string> names = cpp::c_names(nest);
  const std::string& read = names[at(copy.read)];
  const std::string& stored = names[at(copy.stored)];
  const std::string length = std::to_string(nest.axes[at(copy.read)].extent);
  const std::string width = std::to_string(nest.axes[at(copy.stored)].extent);
  out.line("void " + name + "(const float* a0, float* to, long begin, long end) {").indent();
  out.line("for (long i = begin; i < end; ++i) {").indent();
  cpp::print_decode(out, nest, copy.outer, "i");
  out.line("for (long r = 0; r < " + length + "; r += kLanes) {").indent();
  out.line("for (long s = 0; s < " + width + "; s += kLanes) {").indent();
  out.line("Vector square[kLanes] = {};");
  out.line("SYNO_UNROLL");
  out.line("for (long l = 0; l < least(kLanes, " + width + "); ++l) {").indent();
  out.line("const long " + stored + " = s + l;");
  std::vector<std::string> tests;
  if (nest.axes[at(copy.stored)].extent % 16 != 0) tests.push_back(stored + " < " + width);
  std::string first = "0";
  std::string last = length;
  for (const Condition& condition : access.conditions) {
    const std::int64_t step = condition.index.coefficient(copy.read);
    if (step == 0) {
      tests.push_back("static_cast<unsigned long>(" + condition.index.text(names) + ") < " +
                      std::to_string(condition.extent));
      continue;
    }
    const Index rest = cpp::without(condition.index, copy.read);
    const auto over = [&](const Index& value) {
      const std::string text = value.text(names);
      return step == 1 ? text : "ceil_divide(" + text + ", " + std::to_string(step) + ")";
    };
    first = "most(" + first + ", " + over(rest * -1) + ")";
    last = "least(" + last + ", " + over(rest * -1 + Index(condition.extent)) + ")";
  }
  if (!tests.empty()) out.line("if (!(" + join(tests, " && ") + ")) continue;");
  const Index address = flat_address(program, nest, access);
  out.line("const float* const from = a0 + (" + cpp::without(address, copy.read).text(names) +
           ");");
  out.line("square[l] = load_part(from + r, " + first + " - r, " + last + " - r);");
  out.dedent().line("}");
  out.line("transpose(square);");
  out.line("SYNO_UNROLL");
  out.line("for (long l = 0; l < least(kLanes, " + length + "); ++l) {").indent();
  out.line("const long " + read + " = r + l;");
  if (nest.axes[at(copy.read)].extent % 16 != 0)
    out.line("if (" + read + " >= " + length + ") break;");
  const Index to = flat_address(program, nest, nest.store);
  out.line("store_part(to + (" + cpp::without(to, copy.stored).text(names) + ") + s, square[l], " +
           width + " - s);");
  out.dedent().line("}");
  for (int depth = 0; depth < 4; ++depth) out.dedent().line("}");
}

}  // namespace syno::training
