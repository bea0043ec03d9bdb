#include "syno/emit/cpp/print_copies.h"

#include <algorithm>

#include "syno/emit/cpp/lanes.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/text.h"

namespace syno::cpp {
namespace {

class CopyPrinter {
 public:
  CopyPrinter(Printer& out, const LoopProgram& program, const RowLoops& rows)
      : out_(out),
        rows_(rows),
        names_(c_names(rows.nest)),
        stored_(flat_address(program, rows.nest, rows.nest.store)),
        address_(flat_address(program, rows.nest, operand())) {}

  void print(const std::string& name) {
    out_.line("void " + name + "(Codes a0, CodesOut to, long begin, long end) {").indent();
    if (goes_on()) {
      runs();
    } else if (rows_.outer.empty()) {
      out_.line("if (begin < end) {").indent();
      one();
    } else {
      const std::string& axis = names_[at(rows_.outer.back())];
      open_runs(out_, rows_);
      out_.line("for (long " + axis + " = i - from; " + axis + " < next - from; ++" + axis + ") {")
          .indent();
      one();
      out_.dedent().line("}");
    }
    for (int block = 0; block < 2; ++block) out_.dedent().line("}");
  }

 private:
  const Access& operand() const { return rows_.nest.operands[0]; }
  std::int64_t extent(int axis) const { return rows_.nest.axes[at(axis)].extent; }
  std::string text(const Index& index) const { return index.text(names_); }

  // Whether rows that follow each other in the innermost loop do so in memory, too.
  bool goes_on() const {
    if (rows_.outer.empty() || in_conditions(operand(), rows_.lane)) return false;
    const int axis = rows_.outer.back();
    for (const Index* index : {&stored_, &address_}) {
      if (!is_linear(*index, axis) || index->coefficient(axis) != extent(rows_.lane)) return false;
    }
    return std::all_of(operand().conditions.begin(), operand().conditions.end(),
                       [&](const Condition& each) {
                         return !each.index.depends_on(axis) ||
                                (is_linear(each.index, axis) && each.index.coefficient(axis) == 1);
                       });
  }

  // "first, last" of what may be read along an axis, counted in `unit` codes, and the tests of all else.
  std::pair<std::string, std::vector<std::string>> bounds(int axis, const std::string& unit) const {
    std::string first = "0";
    std::string last = std::to_string(extent(axis));
    std::vector<std::string> tests;
    for (const Condition& condition : operand().conditions) {
      const Index rest = without(condition.index, axis);
      const std::int64_t step = condition.index.coefficient(axis);
      if (step == 0) {
        tests.push_back(range_test(text(condition.index), condition.extent));
        continue;
      }
      const auto over = [&](const std::string& value) {
        return step == 1 ? value : "ceil_divide(" + value + ", " + std::to_string(step) + ")";
      };
      first = "most(" + first + ", " + over(text(rest * -1)) + ")";
      last = "least(" + last + ", " + over(text(rest * -1 + Index(condition.extent))) + ")";
    }
    return {unit + "(" + first + "), " + unit + "(" + last + ")", tests};
  }

  std::string with_tests(const std::pair<std::string, std::vector<std::string>>& found,
                         const std::string& call) const {
    if (found.second.empty()) return call + found.first + ");";
    return "if (" + join(found.second, " && ") + ") " + call + found.first + "); else " + call +
           "0, 0);";
  }

  // All rows of the innermost loop at once.
  void runs() {
    const int axis = rows_.outer.back();
    const std::string length = std::to_string(extent(rows_.lane));
    const auto base = [&](const Index& index) {
      return "(" + text(without(without(index, rows_.lane), axis)) + ")";
    };
    open_runs(out_, rows_);
    const std::string call = "copy_range(to + " + base(stored_) + ", a0 + " + base(address_) +
                             ", (i - from) * " + length + ", (next - from) * " + length + ", ";
    out_.line(with_tests(bounds(axis, length + " * "), call));
  }

  void one() {
    const std::string call = "copy_row<" + std::to_string(extent(rows_.lane)) + ">(to + (" +
                             text(without(stored_, rows_.lane)) + "), a0 + (" +
                             text(without(address_, rows_.lane)) + "), ";
    out_.line(with_tests(bounds(rows_.lane, ""), call));
  }

  Printer& out_;
  const RowLoops& rows_;
  std::vector<std::string> names_;
  Index stored_;
  Index address_;
};

}  // namespace

bool is_copy(const LoopProgram& program, const RowLoops& rows, const RowEnds& ends) {
  const LoopNest& nest = rows.nest;
  const bool of_codes = ends.same_codes && rows.target == Element::kCode &&
                        ends.operands == std::vector<Element>{Element::kCode};
  if (!of_codes || ends.epilogue || nest.scale != 1 || nest.axes.size() != nest.outputs)
    return false;
  if (rows.lane < 0 || rows.tile >= 0 || rows.part >= 0) return false;
  const Index stored = flat_address(program, nest, nest.store);
  const Index address = flat_address(program, nest, nest.operands[0]);
  return is_linear(stored, rows.lane) && stored.coefficient(rows.lane) == 1 &&
         address.coefficient(rows.lane) == 1 && is_strided(address, nest.operands[0], rows.lane);
}

void print_copy(Printer& out, const LoopProgram& program, const RowLoops& rows,
                const std::string& name) {
  CopyPrinter(out, program, rows).print(name);
}

}  // namespace syno::cpp
