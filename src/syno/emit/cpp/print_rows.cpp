#include "syno/emit/cpp/print_rows.h"

#include <algorithm>
#include <map>
#include <optional>

#include "syno/emit/cpp/lanes.h"
#include "syno/emit/cpp/print_copies.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/checked.h"
#include "syno/support/text.h"

namespace syno::cpp {
namespace {

constexpr std::int64_t kMostUnrolled = 16;
constexpr std::int64_t kMostUnrolledRow = 64;
// Tables of where lanes stand: entries, and how far from each other.
constexpr std::int64_t kMostPlaces = 8192;
constexpr std::int64_t kFarthestPlace = (std::int64_t{1} << 31) - 2;

class RowPrinter {
 public:
  RowPrinter(Printer& out, const LoopProgram& program, const RowLoops& rows, const RowEnds& ends)
      : out_(out),
        rows_(rows),
        ends_(ends),
        inner_tile_(tiles_inner(program, rows)),
        names_(c_names(rows.nest)) {
    stored_ = flat_address(program, nest(), nest().store);
    for (std::size_t o = 0; o < nest().operands.size(); ++o) {
      Access operand = nest().operands[o];
      addresses_.push_back(flat_address(program, nest(), operand));
      slides_.push_back(slides(program, rows, o));
      if (slides_[o]) {
        addresses_[o] = by_meeting(addresses_[o]);
        for (Condition& condition : operand.conditions)
          condition.index = by_meeting(condition.index);
      }
      ensure(rows.tile < 0 || slides_[o] || is_linear(addresses_[o], rows.tile),
             "rows: an address divides the tile");
      conditions_.push_back(std::move(operand.conditions));
    }
  }

  void print(const std::string& name) {
    std::string parameters;
    for (std::size_t o = 0; o < addresses_.size(); ++o)
      parameters += source_of(o) + " a" + std::to_string(o) + ", ";
    const std::int64_t length = rows_.lane < 0 ? 1 : extent(rows_.lane);
    const std::int64_t tile = rows_.tile < 0 ? 1 : extent(rows_.tile);
    out_.line("void " + name + "(" + parameters + std::string(target_type(rows_.target)) +
              " to, long begin, long end" + (ends_.epilogue ? ", const Output& epilogue" : "") +
              ") {")
        .indent();
    out_.line("constexpr long kLength = " + std::to_string(length) +
              ", kTile = " + std::to_string(tile) + ";");
    out_.line("constexpr long kParts = parts_of_row(kLength, kTile);");
    for (std::size_t o = 0; o < addresses_.size(); ++o) {
      if (uses_lane(o) && !is_strided(o) && !rotation(o)) print_places(o);
    }
    open_rows();
    // The masks of the ends of a row become constants.
    if (rows_.window >= 0 && length <= kMostUnrolledRow && sum_count() <= kMostUnrolled) unroll();
    out_.line("for (long v = 0; v < kLength; v += kParts * kLanes) {").indent();
    out_.line("Vector sum[kTile][kParts] = {};");
    sums();
    stores();
    for (int block = 0; block < 4; ++block) out_.dedent().line("}");
  }

 private:
  const LoopNest& nest() const { return rows_.nest; }
  std::int64_t extent(int axis) const { return nest().axes[at(axis)].extent; }
  std::string source_of(std::size_t operand) const {
    const bool known = operand < ends_.operands.size();
    return std::string(source_type(known ? ends_.operands[operand] : Element::kFloat32));
  }
  // An index with the place r where the tile and the window meet instead of the tile.
  Index by_meeting(const Index& index) const {
    const std::int64_t step = index.coefficient(rows_.tile) / rows_.stride;
    return without(without(index, rows_.window), rows_.tile) + Index::axis(rows_.tile) * step;
  }
  std::string text(const Index& index) const { return index.text(names_); }
  // Where the tile and the window meet is the variable r.
  std::string text(std::size_t operand, const Index& index) const {
    if (!slides_[operand]) return text(index);
    std::vector<std::string> names = names_;
    names[at(rows_.tile)] = "r";
    return index.text(names);
  }

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

  // Of lane 0 and element 0 of the tile.
  std::string row_address(std::size_t operand) const {
    Index index = without(addresses_[operand], rows_.lane);
    if (in_tile(operand)) index = without(index, rows_.tile);
    return text(operand, index);
  }
  std::string tile_step(std::size_t operand) const {
    if (!in_tile(operand)) return "";
    return " + c * " + std::to_string(addresses_[operand].coefficient(rows_.tile));
  }

  // Whether it is another one for each element of the window.
  bool in_window(std::size_t operand) const {
    return rows_.window >= 0 && addresses_[operand].depends_on(rows_.window);
  }

  bool uses_lane(std::size_t operand) const {
    return rows_.lane >= 0 && (addresses_[operand].depends_on(rows_.lane) ||
                               in_conditions(nest().operands[operand], rows_.lane));
  }

  bool in_tile(std::size_t operand) const {
    return rows_.tile >= 0 && !slides_[operand] && addresses_[operand].depends_on(rows_.tile);
  }

  bool is_strided(std::size_t operand) const {
    return cpp::is_strided(addresses_[operand], nest().operands[operand], rows_.lane);
  }

  // A loop over runs of the innermost axis, and one over such a run: what does not depend on that axis is computed once.
  void open_rows() {
    if (rows_.outer.empty()) {
      out_.line("for (long i = begin; i < end;) {").indent();
      out_.line("for (; i < end; ++i) {").indent();
      return;
    }
    const std::string& name = names_[at(rows_.outer.back())];
    open_runs(out_, rows_);
    out_.line("for (long " + name + " = i - from; " + name + " < next - from; ++" + name + ") {")
        .indent();
  }

  // Without this the sums stay in memory.
  void unroll() { out_.line("SYNO_UNROLL"); }

  std::optional<Index> rotation(std::size_t operand) const {
    return rotation_of(addresses_[operand], nest().operands[operand], rows_.lane,
                       extent(rows_.lane));
  }

  void sums() {
    int depth = open_loops(nest().outputs, rows_.inner, operands(false));
    if (rows_.inner < nest().axes.size()) {
      out_.line("Vector inner[" + std::string(inner_tile_ ? "kTile" : "1") + "][kParts] = {};");
      int inner_depth = open_loops(rows_.inner, nest().axes.size(), operands(true));
      products(operands(true), "inner", inner_tile_, "", "");
      for (; inner_depth > 0; --inner_depth) out_.dedent().line("}");
      products(operands(false), "sum", true, inner_tile_ ? "" : "inner[0][j]",
               inner_tile_ ? "inner[c][j]" : "");
    } else {
      products(operands(false), "sum", true, "", "");
    }
    for (; depth > 0; --depth) out_.dedent().line("}");
  }

  std::vector<std::size_t> operands(bool inner) const {
    std::vector<std::size_t> result;
    for (std::size_t o = 0; o < addresses_.size(); ++o) {
      if (rows_.is_inner[o] == inner) result.push_back(o);
    }
    return result;
  }

  // Loops over the summed axes [first, last), tests of those conditions that hold for all lanes or none, and bounds of
  // the lanes. Returns how many blocks it opened.
  int open_loops(std::size_t first, std::size_t last, const std::vector<std::size_t>& operands) {
    std::vector<std::string> tests;
    for (const std::size_t o : operands) {
      for (const Condition& condition : conditions_[o]) {
        if (rows_.lane >= 0 && condition.index.depends_on(rows_.lane)) continue;
        const std::string one = range_test(text(o, condition.index), condition.extent);
        if (std::find(tests.begin(), tests.end(), one) == tests.end()) tests.push_back(one);
      }
    }
    int depth = 0;
    const auto open = [&](const std::string& line) {
      out_.line(line + " {").indent();
      ++depth;
    };
    // Innermost last: short loops are unrolled, so that masks become constants.
    std::vector<std::size_t> summed;
    for (std::size_t a = first; a < last; ++a) summed.push_back(a);
    std::stable_sort(summed.begin(), summed.end(), [&](std::size_t a, std::size_t b) {
      return nest().axes[a].extent > nest().axes[b].extent;
    });
    std::int64_t inner = 1;
    std::vector<bool> short_loop(nest().axes.size(), false);
    for (std::size_t s = summed.size(); s-- > 0;) {
      inner *= nest().axes[summed[s]].extent;
      short_loop[summed[s]] = inner <= kMostUnrolled && last == nest().axes.size();
    }
    for (const std::size_t a : summed) {
      const std::string& name = names_[a];
      const std::int64_t extent = nest().axes[a].extent;
      if (short_loop[a] || static_cast<int>(a) == rows_.window) unroll();
      if (static_cast<int>(a) == rows_.window) {
        open("for (long r = 0; r < " + std::to_string(met()) + "; ++r)");
        continue;
      }
      open("for (long " + name + " = 0; " + name + " < " + std::to_string(extent) + "; ++" + name +
           ")");
    }
    if (!tests.empty()) open("if (" + join(tests, " && ") + ")");
    for (const std::size_t o : operands) {
      if (uses_lane(o) && is_strided(o)) bounds(o);
    }
    return depth;
  }

  // How many products each element of the result is the sum of.
  std::int64_t sum_count() const {
    std::int64_t count = 1;
    for (std::size_t a = nest().outputs; a < nest().axes.size(); ++a)
      count *= nest().axes[a].extent;
    return count;
  }

  // How many different elements the tile and the window meet in.
  std::int64_t met() const {
    return rows_.stride * (extent(rows_.tile) - 1) + rows_.step * (extent(rows_.window) - 1) + 1;
  }

  // Adds the product of the operands, of `factor` and of `tile_factor` to `sum`, for all parts and all of the tile.
  void products(const std::vector<std::size_t>& operands, const std::string& sum, bool has_tile,
                const std::string& factor, const std::string& tile_factor) {
    const auto times = [](std::string& product, const std::string& other) {
      product += (product.empty() ? "" : " * ") + other;
    };
    unroll();
    out_.line("for (long j = 0; j < kParts; ++j) {").indent();
    out_.line("const long l = v + j * kLanes;");
    std::string product = factor;
    std::string splats;
    std::string tiled = tile_factor;
    std::string tiled_splats;
    for (const std::size_t o : operands) {
      const std::string number = std::to_string(o);
      if (!uses_lane(o)) {
        times(in_tile(o) || in_window(o) ? tiled_splats : splats,
              "a" + number + "[" + address(o) + "]");
      } else if (in_tile(o)) {
        times(tiled, lanes(o));
      } else {
        const bool kept = slides_[o];
        out_.line(std::string(kept ? "" : "const ") + "Vector p" + number + " = " + lanes(o) + ";");
        // Otherwise each product would load it again.
        if (kept) out_.line("SYNO_HOLD(p" + number + ");");
        times(product, "p" + number);
      }
    }
    if (!splats.empty()) times(product, "splat(" + splats + ")");
    if (!tiled_splats.empty()) times(tiled, "splat(" + tiled_splats + ")");
    const bool shared = !product.empty();
    if (shared) out_.line("const Vector p = " + product + ";");
    if (shared) tiled = tiled.empty() ? "p" : "p * " + tiled;
    if (tiled.empty()) tiled = "splat(1.0f)";
    if (rows_.window >= 0) {
      const std::string& window = names_[at(rows_.window)];
      const std::string step = std::to_string(rows_.step);
      unroll();
      out_.line("for (long " + window + " = 0; " + window + " < " +
                std::to_string(extent(rows_.window)) + "; ++" + window + ") {")
          .indent();
      const std::string met = "r - " + (rows_.step == 1 ? "" : step + " * ") + window;
      if (rows_.stride == 1) {
        out_.line("const long c = " + met + ";");
        out_.line("if (0 <= c && c < kTile) " + sum + "[c][j] += " + tiled + ";");
      } else {
        const std::string stride = std::to_string(rows_.stride);
        out_.line("const long at = " + met + ", c = at / " + stride + ";");
        out_.line("if (0 <= at && at % " + stride + " == 0 && c < kTile) " + sum +
                  "[c][j] += " + tiled + ";");
      }
      out_.dedent().line("}");
    } else if (has_tile && rows_.tile >= 0) {
      unroll();
      out_.line("for (long c = 0; c < kTile; ++c) " + sum + "[c][j] += " + tiled + ";");
    } else {
      out_.line(sum + "[0][j] += " + tiled + ";");
    }
    out_.dedent().line("}");
  }

  // const float* fromO and the lanes [firstO, lastO) that may be read.
  void bounds(std::size_t o) {
    const std::string number = std::to_string(o);
    std::string first = "0";
    std::string last = "kLength";
    for (const Condition& condition : conditions_[o]) {
      const std::int64_t step = condition.index.coefficient(rows_.lane);
      if (step == 0) continue;
      const Index rest = without(condition.index, rows_.lane);
      const std::string least = text(o, rest * -1);
      const std::string most = text(o, rest * -1 + Index(condition.extent));
      const auto over = [&](const std::string& value) {
        return step == 1 ? value : "ceil_divide(" + value + ", " + std::to_string(step) + ")";
      };
      first = "most(" + first + ", " + over(least) + ")";
      last = "least(" + last + ", " + over(most) + ")";
    }
    out_.line(source_of(o) + " const from" + number + " = a" + number + " + (" + row_address(o) +
              ");");
    out_.line("const long first" + number + " = " + first + ", last" + number + " = " + last + ";");
  }

  // The terms of an address that depend on the lane, without the constant.
  Index lane_part(std::size_t o) const {
    Index part;
    for (const Index::Term& term : addresses_[o].terms()) {
      if (Index::term(term).depends_on(rows_.lane)) part = part + Index::term(term);
    }
    return part;
  }

  // Axes, besides the lane, on which the places of lanes depend; nothing when a table of them would be too large.
  std::optional<std::vector<int>> axes_of_places(std::size_t o) const {
    const Index part = lane_part(o);
    std::vector<int> axes;
    std::int64_t entries = extent(rows_.lane);
    for (std::size_t a = 0; a < nest().axes.size(); ++a) {
      const int axis = static_cast<int>(a);
      const auto& conditions = conditions_[o];
      const bool asked = part.depends_on(axis) ||
                         std::any_of(conditions.begin(), conditions.end(), [&](const Condition& c) {
                           return c.index.depends_on(rows_.lane) && c.index.depends_on(axis);
                         });
      if (axis == rows_.lane || !asked) continue;
      axes.push_back(axis);
      entries *= extent(axis);
      if (entries > kMostPlaces) return std::nullopt;
    }
    const Range range = Indices(nest().extents()).range(part);
    if (range.most > kFarthestPlace || range.least < -kFarthestPlace) return std::nullopt;
    return axes;
  }

  void print_places(std::size_t o) {
    const auto axes = axes_of_places(o);
    if (!axes) return;
    std::int64_t steps = 1;
    for (const int axis : *axes) steps *= extent(axis);
    out_.line("static constexpr auto places" + std::to_string(o) + " = places_of<" +
              std::to_string(steps) +
              ", kLength, kParts>([]([[maybe_unused]] long s, long lane) -> long {")
        .indent();
    print_decode(out_, nest(), *axes, "s");
    std::vector<std::string> names = names_;
    names[at(rows_.lane)] = "lane";
    for (const Condition& condition : conditions_[o]) {
      if (!condition.index.depends_on(rows_.lane)) continue;
      out_.line("if (!(" + range_test(condition.index.text(names), condition.extent) +
                ")) return kNowhere;");
    }
    out_.line("return " + lane_part(o).text(names) + ";");
    out_.dedent().line("});");
  }

  std::string lanes(std::size_t o) {
    const std::string number = std::to_string(o);
    if (is_strided(o)) {
      const std::int64_t step = addresses_[o].coefficient(rows_.lane);
      const std::string range = "first" + number + " - l, last" + number + " - l)";
      const std::string from = "from" + number + tile_step(o);
      if (step == 1) return "load_part(" + from + " + l, " + range;
      return "load_strided(" + from + " + " + std::to_string(step) + " * l, " +
             std::to_string(step) + ", " + range;
    }
    if (const auto rest = rotation(o)) {
      Index base;
      for (const Index::Term& term : addresses_[o].terms()) {
        const Index index = Index::term(term);
        if (index.depends_on(rows_.lane)) continue;
        if (term.kind != Index::Kind::kAxis || term.axis != rows_.tile) base = base + index;
      }
      base = base + Index(addresses_[o].constant());
      const std::string length = std::to_string(extent(rows_.lane));
      const std::string turn =
          rest->is_constant() ? std::to_string(floor_modulo(rest->constant(), extent(rows_.lane)))
                              : "turn_of(" + text(*rest) + ", " + length + ")";
      return "load_rotated(a" + number + " + (" + text(base) + ")" + tile_step(o) + " + l, l, " +
             turn + ", " + length + ", 0, " + length + " - l)";
    }
    if (const auto axes = axes_of_places(o)) {
      Index base = addresses_[o] - lane_part(o);
      if (in_tile(o)) base = without(base, rows_.tile);
      Index step;
      for (const int axis : *axes) step = step * extent(axis) + Index::axis(axis);
      return "gather_at(a" + number + " + (" + text(base) + ")" + tile_step(o) + ", places" +
             number + ", " + text(step) + ", l)";
    }
    std::vector<std::string> names = names_;
    names[at(rows_.lane)] = "(l + lane)";
    std::string value = "a" + number + "[" + address(o, "(l + lane)") + "]";
    std::string tests;
    for (const Condition& condition : conditions_[o])
      tests +=
          (tests.empty() ? "" : " && ") + range_test(condition.index.text(names), condition.extent);
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
    if (rows_.part >= 0 && rows_.target == Element::kFloat32) {
      store_in_turns(names);
      return;
    }
    // Words are stored as they are: numbers with an epilogue go one by one.
    const bool in_words = rows_.part >= 0 && !ends_.epilogue;
    if (in_words && rows_.part == rows_.tile) {
      store_words();
      return;
    }
    unroll();
    out_.line("for (long c = 0; c < kTile; ++c) {").indent();
    unroll();
    out_.line("for (long j = 0; j < kParts; ++j) {").indent();
    out_.line("const long l = v + j * kLanes;");
    const std::string value = result("c");
    const std::string ends = ends_.epilogue ? epilogue_of_lanes(names) + ", " : "";
    const std::string suffix = ends_.epilogue ? "_end(" : "(";
    if (in_words) {
      row = without(row, rows_.lane);
      const std::string word = std::to_string(extent(rows_.part));
      out_.line("store_parts<" + word + ">(to + (" + row.text(names) + ") + " + word + " * l, " +
                value + ", kLength - l);");
    } else if (side_by_side) {
      out_.line((ends_.epilogue ? "store_end(" + ends : "store_part(") + "to + (" +
                row.text(names) + ") + l, " + value + ", kLength - l);");
    } else {
      out_.line("scatter" + suffix + ends + "to, " + value +
                ", kLength - l, [&](long lane) { return " + row.text(names) + "; });");
    }
    out_.dedent().line("}");
    out_.dedent().line("}");
  }

  // What is stored of an element of the tile.
  std::string result(const std::string& element) const {
    const std::string sum = "sum[" + element + "][j]";
    return nest().scale == 1 ? sum : sum + " * splat(" + std::to_string(nest().scale) + ")";
  }

  // The elements of the tile are side by side, and those of the lane are so many apart.
  void store_in_turns(std::vector<std::string> names) {
    const std::int64_t size = extent(rows_.part);
    const std::string count = std::to_string(size);
    const Index row = without(without(stored_, rows_.lane), rows_.tile);
    std::string values;
    for (std::int64_t part = 0; part < size; ++part)
      values += (part == 0 ? "" : ", ") + result(std::to_string(part));
    unroll();
    out_.line("for (long j = 0; j < kParts; ++j) {").indent();
    out_.line("const long l = v + j * kLanes;");
    out_.line("const Interleaved<" + count + "> turns = interleaved(" + values + ");");
    unroll();
    out_.line("for (long c = 0; c < " + count + "; ++c) {").indent();
    const std::string to = "to + (" + text(row) + ") + " + count + " * l + c * kLanes";
    const std::string left = count + " * (kLength - l) - c * kLanes";
    const std::string stored = "turns.at[c], " + left + ");";
    if (!ends_.epilogue) {
      out_.line("store_part(" + to + ", " + stored);
    } else if (has_one_channel()) {
      out_.line("store_end(" + epilogue_of_lanes(std::move(names)) + ", " + to + ", " + stored);
    } else {
      out_.line("float* const from = " + to + ";");
      out_.line("scatter_end(epilogue, from, turns.at[c], " + left +
                ", [](long lane) { return lane; });");
    }
    out_.dedent().line("}");
    out_.dedent().line("}");
  }

  // All parts of a word at once.
  void store_words() {
    const Index row = without(without(stored_, rows_.lane), rows_.tile);
    const std::int64_t word = extent(rows_.part);
    unroll();
    out_.line("for (long j = 0; j < kParts; ++j) {").indent();
    out_.line("const long l = v + j * kLanes;");
    std::string values;
    for (std::int64_t part = 0; part < word; ++part) values += result(std::to_string(part)) + ", ";
    out_.line("store_words(to + (" + text(row) + ") + " + std::to_string(word) + " * l, " + values +
              "kLength - l);");
    out_.dedent().line("}");
  }

  // Whether all elements of the tile and of the lane have one channel, or channels do not matter.
  bool has_one_channel() const {
    if (ends_.channel < 0) return true;
    const Index& channel = nest().store.index[at(ends_.channel)];
    return !channel.depends_on(rows_.lane) && !channel.depends_on(rows_.part);
  }

  // With the channels of the lanes, where they are one, or side by side.
  std::string epilogue_of_lanes(std::vector<std::string> names) const {
    if (ends_.channel < 0) return "epilogue";
    const Index& channel = nest().store.index[at(ends_.channel)];
    if (rows_.lane < 0 || !channel.depends_on(rows_.lane))
      return "epilogue.of_channel(" + channel.text(names) + ")";
    if (!is_linear(channel, rows_.lane) || channel.coefficient(rows_.lane) != 1) return "epilogue";
    names[at(rows_.lane)] = "l";
    return "epilogue.of_channels(" + channel.text(names) + ", kLength - l)";
  }

  Printer& out_;
  const RowLoops& rows_;
  RowEnds ends_;
  bool inner_tile_;
  std::vector<std::string> names_;
  Index stored_;
  // Of the operands; without the window where they slide along it.
  std::vector<Index> addresses_;
  std::vector<std::vector<Condition>> conditions_;
  std::vector<bool> slides_;
};

}  // namespace

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

std::string range_test(const std::string& value, std::int64_t extent) {
  return "static_cast<unsigned long>(" + value + ") < " + std::to_string(extent);
}

void open_runs(Printer& out, const RowLoops& rows) {
  const std::vector<int> runs(rows.outer.begin(), rows.outer.end() - 1);
  const std::string size = std::to_string(rows.nest.axes[at(rows.outer.back())].extent);
  out.line("for (long i = begin, next; i < end; i = next) {").indent();
  out.line("const long run = i / " + size + ", from = run * " + size + ";");
  out.line("next = least(end, from + " + size + ");");
  print_decode(out, rows.nest, runs, "run");
}

void print_rows(Printer& out, const LoopProgram& program, const RowLoops& rows,
                const std::string& name, const RowEnds& ends) {
  if (is_copy(program, rows, ends)) return print_copy(out, program, rows, name);
  RowPrinter(out, program, rows, ends).print(name);
}

}  // namespace syno::cpp
