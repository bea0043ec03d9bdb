#include "syno/emit/cpp/rows.h"

#include <algorithm>
#include <map>
#include <optional>

#include "syno/plan/loop_transform.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno::cpp {
namespace {

constexpr std::int64_t kMostTile = 8;
constexpr std::int64_t kMostUnrolled = 16;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

bool in_conditions(const Access& access, int axis) {
  return std::any_of(access.conditions.begin(), access.conditions.end(),
                     [&](const Condition& c) { return c.index.depends_on(axis); });
}

// Whether an axis is in the index as a multiple alone.
bool is_linear(const Index& index, int axis) {
  return std::none_of(index.terms().begin(), index.terms().end(), [&](const Index::Term& term) {
    return term.kind != Index::Kind::kAxis && term.of->depends_on(axis);
  });
}

Index without(const Index& index, int axis) {
  return index - Index::axis(axis) * index.coefficient(axis);
}

// Splits output axis `axis` into two, of which the inner one has extent `block`.
LoopNest split_axis(const LoopNest& nest, int axis, std::int64_t block) {
  std::vector<LoopAxis> axes = nest.axes;
  axes[at(axis)].extent /= block;
  axes.insert(axes.begin() + axis + 1, {axes[at(axis)].name, block, false});
  std::vector<Index> values;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const int moved = static_cast<int>(a) + (static_cast<int>(a) > axis ? 1 : 0);
    values.push_back(static_cast<int>(a) == axis ? Index::axis(axis) * block + Index::axis(axis + 1)
                                                 : Index::axis(moved));
  }
  return with_axes(nest, std::move(axes), nest.outputs + 1, values);
}

class RowPrinter {
 public:
  RowPrinter(Printer& out, const LoopProgram& program, const RowLoops& rows)
      : out_(out), rows_(rows), names_(c_names(rows.nest)) {
    stored_ = flat_address(program, nest(), nest().store);
    for (const Access& operand : nest().operands)
      addresses_.push_back(flat_address(program, nest(), operand));
  }

  void print(const std::string& name) {
    std::string parameters;
    for (std::size_t o = 0; o < addresses_.size(); ++o)
      parameters += "const float* a" + std::to_string(o) + ", ";
    const std::int64_t length = rows_.lane < 0 ? 1 : extent(rows_.lane);
    const std::int64_t tile = rows_.tile < 0 ? 1 : extent(rows_.tile);
    out_.line("void " + name + "(" + parameters + "float* to, long begin, long end) {").indent();
    out_.line("constexpr long kLength = " + std::to_string(length) +
              ", kTile = " + std::to_string(tile) + ";");
    out_.line("constexpr long kParts = parts_of_row(kLength, kTile);");
    out_.line("for (long i = begin; i < end; ++i) {").indent();
    print_decode(out_, nest(), rows_.outer, "i");
    out_.line("for (long v = 0; v < kLength; v += kParts * kLanes) {").indent();
    out_.line("Vector sum[kTile][kParts] = {};");
    sums();
    stores();
    out_.dedent().line("}");
    out_.dedent().line("}");
    out_.dedent().line("}");
  }

 private:
  const LoopNest& nest() const { return rows_.nest; }
  std::int64_t extent(int axis) const { return nest().axes[at(axis)].extent; }
  std::string text(const Index& index) const { return index.text(names_); }

  // The tile's axis is the variable c; the lane's axis is 0, or `lane`.
  std::string address(std::size_t operand, const std::string& lane = "") {
    Index index = addresses_[operand];
    std::vector<std::string> names = names_;
    if (rows_.tile >= 0) names[at(rows_.tile)] = "c";
    if (rows_.lane >= 0) {
      if (lane.empty()) index = without(index, rows_.lane);
      names[at(rows_.lane)] = lane;
    }
    return index.text(names);
  }

  bool uses_lane(std::size_t operand) const {
    return rows_.lane >= 0 && (addresses_[operand].depends_on(rows_.lane) ||
                               in_conditions(nest().operands[operand], rows_.lane));
  }

  // Lanes are memory side by side, or a stride apart, within bounds that the conditions give.
  bool is_strided(std::size_t operand) const {
    const Access& access = nest().operands[operand];
    const auto positive = [&](const Index& index) {
      return is_linear(index, rows_.lane) && index.coefficient(rows_.lane) > 0;
    };
    return positive(addresses_[operand]) &&
           std::all_of(
               access.conditions.begin(), access.conditions.end(), [&](const Condition& condition) {
                 return !condition.index.depends_on(rows_.lane) || positive(condition.index);
               });
  }

  // Without this the sums stay in memory.
  void unroll() { out_.line("SYNO_UNROLL"); }

  // Of an address base + (lane + rest) mod length, with the lane's own length: the rest. Only then is there one.
  std::optional<Index> rotation(std::size_t operand) const {
    std::optional<Index> rest;
    for (const Index::Term& term : addresses_[operand].terms()) {
      if (term.kind == Index::Kind::kAxis ? term.axis != rows_.lane
                                          : !term.of->depends_on(rows_.lane))
        continue;
      const bool rotates = term.kind == Index::Kind::kRemainder && term.coefficient == 1 &&
                           term.divisor == extent(rows_.lane) && is_linear(*term.of, rows_.lane) &&
                           term.of->coefficient(rows_.lane) == 1 && !rest;
      if (!rotates) return std::nullopt;
      rest = without(*term.of, rows_.lane);
    }
    const auto& conditions = nest().operands[operand].conditions;
    const bool plain = std::none_of(conditions.begin(), conditions.end(), [&](const Condition& c) {
      return c.index.depends_on(rows_.lane);
    });
    // A rest that depends on nothing is a number of 0..length-1, which is what the code asks for.
    return rest && plain && rest->is_constant() ? rest : std::nullopt;
  }

  static std::string test(const std::string& value, std::int64_t extent) {
    return "static_cast<unsigned long>(" + value + ") < " + std::to_string(extent);
  }

  void sums() {
    std::vector<std::string> tests;
    for (const Access& operand : nest().operands) {
      for (const Condition& condition : operand.conditions) {
        if (rows_.lane >= 0 && condition.index.depends_on(rows_.lane)) continue;
        const std::string one = test(text(condition.index), condition.extent);
        if (std::find(tests.begin(), tests.end(), one) == tests.end()) tests.push_back(one);
      }
    }
    // Tests that ask no summed axis stand outside of the loops.
    int depth = 0;
    const auto open = [&](const std::string& line) {
      out_.line(line + " {").indent();
      ++depth;
    };
    // Innermost last: short loops are unrolled, so that masks become constants.
    std::vector<std::size_t> summed;
    for (std::size_t a = nest().outputs; a < nest().axes.size(); ++a) summed.push_back(a);
    std::stable_sort(summed.begin(), summed.end(), [&](std::size_t a, std::size_t b) {
      return nest().axes[a].extent > nest().axes[b].extent;
    });
    std::int64_t inner = 1;
    std::vector<bool> short_loop(nest().axes.size(), false);
    for (std::size_t s = summed.size(); s-- > 0;) {
      inner *= nest().axes[summed[s]].extent;
      short_loop[summed[s]] = inner <= kMostUnrolled;
    }
    for (const std::size_t a : summed) {
      const std::string& name = names_[a];
      const std::int64_t extent = nest().axes[a].extent;
      if (short_loop[a]) unroll();
      open("for (long " + name + " = 0; " + name + " < " + std::to_string(extent) + "; ++" + name +
           ")");
    }
    if (!tests.empty()) open("if (" + join(tests, " && ") + ")");
    for (std::size_t o = 0; o < addresses_.size(); ++o) {
      if (uses_lane(o) && is_strided(o)) bounds(o);
    }
    unroll();
    out_.line("for (long j = 0; j < kParts; ++j) {").indent();
    out_.line("const long l = v + j * kLanes;");
    std::string product;
    std::string splats;
    std::string tiled;
    for (std::size_t o = 0; o < addresses_.size(); ++o) {
      const bool in_tile = rows_.tile >= 0 && addresses_[o].depends_on(rows_.tile);
      if (uses_lane(o)) {
        out_.line("const Vector p" + std::to_string(o) + " = " + lanes(o) + ";");
        product += (product.empty() ? "" : " * ") + ("p" + std::to_string(o));
      } else {
        const std::string element = "a" + std::to_string(o) + "[" + address(o) + "]";
        std::string& factors = in_tile ? tiled : splats;
        factors += (factors.empty() ? "" : " * ") + element;
      }
    }
    if (!splats.empty()) product += (product.empty() ? "" : " * ") + ("splat(" + splats + ")");
    out_.line("const Vector p = " + (product.empty() ? "splat(1.0f)" : product) + ";");
    if (rows_.tile >= 0) {
      unroll();
      out_.line("for (long c = 0; c < kTile; ++c) sum[c][j] += p * splat(" + tiled + ");");
    } else {
      out_.line("sum[0][j] += p;");
    }
    out_.dedent().line("}");
    for (; depth > 0; --depth) out_.dedent().line("}");
  }

  // const float* fromO and the lanes [firstO, lastO) that may be read.
  void bounds(std::size_t o) {
    const std::string number = std::to_string(o);
    std::string first = "0";
    std::string last = "kLength";
    for (const Condition& condition : nest().operands[o].conditions) {
      const std::int64_t step = condition.index.coefficient(rows_.lane);
      if (step == 0) continue;
      const Index rest = without(condition.index, rows_.lane);
      const std::string least = text(rest * -1);
      const std::string most = text(rest * -1 + Index(condition.extent));
      const auto over = [&](const std::string& value) {
        return step == 1 ? value : "ceil_divide(" + value + ", " + std::to_string(step) + ")";
      };
      first = "most(" + first + ", " + over(least) + ")";
      last = "least(" + last + ", " + over(most) + ")";
    }
    out_.line("const float* const from" + number + " = a" + number + " + (" + address(o) + ");");
    out_.line("const long first" + number + " = " + first + ", last" + number + " = " + last + ";");
  }

  std::string lanes(std::size_t o) {
    const std::string number = std::to_string(o);
    if (is_strided(o)) {
      const std::int64_t step = addresses_[o].coefficient(rows_.lane);
      const std::string range = "first" + number + " - l, last" + number + " - l)";
      if (step == 1) return "load_part(from" + number + " + l, " + range;
      return "load_strided(from" + number + " + " + std::to_string(step) + " * l, " +
             std::to_string(step) + ", " + range;
    }
    if (const auto rest = rotation(o)) {
      Index base;
      for (const Index::Term& term : addresses_[o].terms()) {
        const Index index = Index::term(term);
        if (!index.depends_on(rows_.lane)) base = base + index;
      }
      base = base + Index(addresses_[o].constant());
      const std::string length = std::to_string(extent(rows_.lane));
      return "load_rotated(a" + number + " + (" + text(base) + ") + l, l, " +
             std::to_string(floor_modulo(rest->constant(), extent(rows_.lane))) + ", " + length +
             ", 0, " + length + " - l)";
    }
    std::vector<std::string> names = names_;
    names[at(rows_.lane)] = "(l + lane)";
    std::string value = "a" + number + "[" + address(o, "(l + lane)") + "]";
    std::string tests;
    for (const Condition& condition : nest().operands[o].conditions)
      tests += (tests.empty() ? "" : " && ") + test(condition.index.text(names), condition.extent);
    if (!tests.empty()) value = tests + " ? " + value + " : 0.0f";
    return "gather(kLength - l, [&](long lane) { return " + value + "; })";
  }

  void stores() {
    Index row = stored_;
    std::vector<std::string> names = names_;
    const bool side_by_side =
        rows_.lane < 0 || (is_linear(row, rows_.lane) && row.coefficient(rows_.lane) == 1);
    if (rows_.lane >= 0 && side_by_side) row = without(row, rows_.lane);
    if (rows_.tile >= 0) names[at(rows_.tile)] = "c";
    if (rows_.lane >= 0) names[at(rows_.lane)] = "(l + lane)";
    unroll();
    out_.line("for (long c = 0; c < kTile; ++c) {").indent();
    unroll();
    out_.line("for (long j = 0; j < kParts; ++j) {").indent();
    out_.line("const long l = v + j * kLanes;");
    const std::string value =
        nest().scale == 1 ? "sum[c][j]" : "sum[c][j] * splat(" + std::to_string(nest().scale) + ")";
    if (side_by_side) {
      out_.line("store_part(to + (" + row.text(names) + ") + l, " + value + ", kLength - l);");
    } else {
      out_.line("scatter(to, " + value + ", kLength - l, [&](long lane) { return " +
                row.text(names) + "; });");
    }
    out_.dedent().line("}");
    out_.dedent().line("}");
  }

  Printer& out_;
  const RowLoops& rows_;
  std::vector<std::string> names_;
  Index stored_;
  std::vector<Index> addresses_;
};

}  // namespace

std::int64_t RowLoops::count() const {
  std::int64_t count = 1;
  for (const int axis : outer) count *= nest.axes[at(axis)].extent;
  return count;
}

std::vector<std::string> c_names(const LoopNest& nest) {
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const LoopAxis& axis : nest.axes) {
    const int before = seen[axis.name]++;
    names.push_back(axis.name + (before == 0 ? "" : std::to_string(before + 1)) + "_");
  }
  return names;
}

void print_decode(Printer& out, const LoopNest& nest, const std::vector<int>& axes,
                  const std::string& flat) {
  const std::vector<std::string> names = c_names(nest);
  std::int64_t inner = 1;
  for (std::size_t a = axes.size(); a-- > 0;) {
    const std::int64_t extent = nest.axes[at(axes[a])].extent;
    std::string value = inner == 1 ? flat : flat + " / " + std::to_string(inner);
    if (a > 0) value += " % " + std::to_string(extent);
    out.line("[[maybe_unused]] const long " + names[at(axes[a])] + " = " + value + ";");
    inner *= extent;
  }
}

RowLoops row_loops(const LoopProgram& program, const LoopNest& given, bool keep_order) {
  RowLoops rows;
  rows.nest = given;
  Index stored = flat_address(program, given, given.store);
  // Vectors over what is stored side by side, or else over the longest axis.
  for (std::size_t a = 0; a < given.outputs; ++a) {
    const int axis = static_cast<int>(a);
    const auto better = [&](int one, int other) {
      if (other < 0) return true;
      const bool side = stored.coefficient(one) == 1 && is_linear(stored, one);
      const bool other_side = stored.coefficient(other) == 1 && is_linear(stored, other);
      if (side != other_side) return side;
      return given.axes[at(one)].extent > given.axes[at(other)].extent;
    };
    if (better(axis, rows.lane)) rows.lane = axis;
  }
  for (std::size_t a = 0; a < rows.nest.outputs && rows.tile < 0; ++a) {
    const int axis = static_cast<int>(a);
    if (axis == rows.lane) continue;
    std::size_t users = 0;
    bool plain = is_linear(stored, axis);
    for (const Access& operand : rows.nest.operands) {
      const Index address = flat_address(program, rows.nest, operand);
      plain = plain && !in_conditions(operand, axis);
      if (!address.depends_on(axis)) continue;
      ++users;
      const bool splat =
          rows.lane < 0 || (!address.depends_on(rows.lane) && !in_conditions(operand, rows.lane));
      plain = plain && splat && is_linear(address, axis);
    }
    if (users != 1 || !plain) continue;
    const std::int64_t extent = rows.nest.axes[a].extent;
    std::int64_t block = std::min(extent, kMostTile);
    while (extent % block != 0) --block;
    if (block < 2) continue;
    if (block == extent) {
      rows.tile = axis;
    } else {
      rows.nest = split_axis(rows.nest, axis, block);
      if (rows.lane > axis) ++rows.lane;
      rows.tile = axis + 1;
    }
  }
  for (std::size_t a = 0; a < rows.nest.outputs; ++a) {
    const int axis = static_cast<int>(a);
    if (axis != rows.lane && axis != rows.tile) rows.outer.push_back(axis);
  }
  if (!keep_order) {
    stored = flat_address(program, rows.nest, rows.nest.store);
    std::stable_sort(rows.outer.begin(), rows.outer.end(),
                     [&](int a, int b) { return stored.coefficient(a) > stored.coefficient(b); });
  }
  return rows;
}

void print_rows(Printer& out, const LoopProgram& program, const RowLoops& rows,
                const std::string& name) {
  RowPrinter(out, program, rows).print(name);
}

}  // namespace syno::cpp
