#include "syno/emit/cpp/contraction.h"

#include <algorithm>
#include <functional>
#include <set>

#include "syno/emit/cpp/lanes.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/error.h"

namespace syno::cpp {
namespace {

// With fewer rows, a loop over rows shares what it loads as well, and needs no panel.
constexpr std::int64_t kLeastRows = 8;
constexpr std::int64_t kLanes = 16;
// Of the time of a contraction, what filling its panel takes.
constexpr double kFillShare = 0.1;
// Vectors lie over rows where more lanes than this would be unused.
constexpr double kMostLaneCost = 1.05;
// Fewer terms side by side fill no vectors.
constexpr std::int64_t kLeastInside = 8;
// A tile is of one line where taps slide along lines: shorter ones would leave it narrow.
constexpr std::int64_t kLeastLine = 4;
// Pairs of rows need a third more weights: they pay where each weight meets so many columns, and where so much of the
// products is left with the lanes that are not used.
constexpr std::int64_t kLeastPairColumns = 96;
constexpr std::int64_t kLeastPairTerms = 16;
constexpr double kMostPairCost = 0.9;

// How many parts of at most this size there are.
std::int64_t parts_of(std::int64_t whole, std::int64_t size) {
  return (whole + size - 1) / size;
}

void visit(const Index& index, const std::function<void(const Index&)>& see) {
  see(index);
  for (const Index::Term& term : index.terms()) {
    if (term.kind != Index::Kind::kAxis) visit(*term.of, see);
  }
}

// How a tap may slide over a place: the access might depend on step * tap + phases * place alone.
std::set<std::pair<std::int64_t, std::int64_t>> possible_slides(const Access& access, int place,
                                                                int tap) {
  std::set<std::pair<std::int64_t, std::int64_t>> slides;
  const auto see = [&](const Index& index) {
    const std::int64_t of_place = index.coefficient(place);
    const std::int64_t of_tap = index.coefficient(tap);
    if (of_place == 0 || of_tap == 0 || (of_place > 0) != (of_tap > 0)) return;
    if (of_tap % of_place == 0)
      slides.emplace(1, of_tap / of_place);
    else if (of_place % of_tap == 0)
      slides.emplace(of_place / of_tap, 1);
  };
  for (const Index& index : access.index) visit(index, see);
  for (const Condition& condition : access.conditions) visit(condition.index, see);
  return slides;
}

class Matcher {
 public:
  Matcher(const LoopProgram& program, const LoopNest& nest, std::int64_t cache_floats,
          Precision precision, Element data, const NestTuning& tuning)
      : program_(program),
        tuning_(tuning),
        word_(terms_of_word(precision)),
        cache_elements_(cache_floats * word_),
        data_element_(data) {
    c_.nest = nest;
    c_.precision = precision;
  }

  std::optional<Contraction> run() {
    if (!find_operands()) return std::nullopt;
    find_roles();
    const bool is_thin = c_.row_count() < kLeastRows || c_.row_count() * c_.term_count() < 16;
    if (is_thin && tuning_.form != NestTuning::Form::kProduct) return std::nullopt;
    if (word_ > 1 && c_.terms.empty()) return std::nullopt;
    choose_columns();
    c_.in_place = word_ == 1 ? is_in_place() : words_are_in_place();
    if (!c_.in_place) make_panel();
    return std::move(c_);
  }

 private:
  const LoopNest& nest() const { return c_.nest; }
  const Access& data() const { return nest().operands[c_.data]; }
  const Access& weight() const { return nest().operands[c_.weight]; }
  std::int64_t extent(int axis) const { return nest().axes[at(axis)].extent; }

  bool find_operands() {
    if (nest().operands.size() != 2) return false;
    const auto from_weights = [&](std::size_t o) {
      return program_.buffer(nest().operands[o].buffer).from_weights;
    };
    if (from_weights(0) == from_weights(1)) return false;
    c_.data = from_weights(0) ? 1 : 0;
    c_.weight = 1 - c_.data;
    return true;
  }

  void find_roles() {
    for (std::size_t a = 0; a < nest().axes.size(); ++a) {
      const int axis = static_cast<int>(a);
      const bool in_data = depends_on(data(), axis);
      const bool in_weight = depends_on(weight(), axis);
      if (a >= nest().outputs) {
        c_.terms.push_back(axis);
      } else if (in_weight) {
        (in_data ? c_.groups : c_.rows).push_back(axis);
      } else {
        c_.slices.push_back(axis);
      }
    }
    if (c_.precision != Precision::kInt8) return;
    // Codes of neighbouring rows are stored together.
    const Index stored = flat_address(program_, nest(), nest().store);
    std::stable_sort(c_.rows.begin(), c_.rows.end(),
                     [&](int a, int b) { return stored.coefficient(a) > stored.coefficient(b); });
  }

  // Moves axes of the data from `slices` to `columns`: those that are stored side by side, innermost first.
  void choose_columns() {
    const Index stored = flat_address(program_, nest(), nest().store);
    take_columns(stored, 1);
    if (!c_.columns.empty() || c_.slices.empty()) return;
    // Results of neighbouring columns lie apart: axes with a common step, or the longest axis.
    std::int64_t least = 0;
    for (const int axis : c_.slices) {
      const std::int64_t step = stored.coefficient(axis);
      if (step > 0 && only_affine(stored, axis) && (least == 0 || step < least)) least = step;
    }
    const std::vector<int> slices = c_.slices;
    if (least > 0) take_columns(stored, least);
    const int longest = *std::max_element(slices.begin(), slices.end(),
                                          [&](int a, int b) { return extent(a) < extent(b); });
    if (c_.column_count() >= extent(longest)) return;
    c_.columns = {longest};
    c_.slices = slices;
    c_.slices.erase(std::find(c_.slices.begin(), c_.slices.end(), longest));
  }

  void take_columns(const Index& stored, std::int64_t next) {
    for (std::size_t s = 0; s < c_.slices.size();) {
      const int axis = c_.slices[s];
      if (stored.coefficient(axis) != next || !only_affine(stored, axis)) {
        ++s;
        continue;
      }
      c_.columns.insert(c_.columns.begin(), axis);
      c_.slices.erase(c_.slices.begin() + static_cast<std::ptrdiff_t>(s));
      next *= extent(axis);
      s = 0;
    }
  }

  static bool only_affine(const Index& index, int axis) {
    return std::none_of(index.terms().begin(), index.terms().end(), [&](const Index::Term& term) {
      return term.kind != Index::Kind::kAxis && term.of->depends_on(axis);
    });
  }

  bool is_in_place() {
    if (!data().conditions.empty() || c_.columns.size() > 1) return false;
    const Index address = flat_address(program_, nest(), data());
    if (!address.is_affine()) return false;
    if (c_.columns.empty()) return true;
    const int column = c_.columns[0];
    c_.point = address.coefficient(column);
    const bool side_by_side = flat_address(program_, nest(), nest().store).coefficient(column) == 1;
    // Vectors over columns must not read behind the input; values have room behind them.
    const bool ends_well = extent(column) % kLanes == 0 || extent(column) >= 3 * kLanes ||
                           program_.buffer(data().buffer).kind == BufferKind::kValue;
    if (!side_by_side || (c_.point == 1 && ends_well)) return true;
    c_.point = 1;
    return false;
  }

  // Vectors over rows read words of terms side by side, from wherever the columns are.
  bool words_are_in_place() {
    if (data_element_ != panel_element(c_.precision) || !data().conditions.empty() ||
        c_.columns.size() > 1)
      return false;
    const Index address = flat_address(program_, nest(), data());
    if (!address.is_affine()) return false;
    const std::int64_t point = c_.columns.empty() ? 0 : address.coefficient(c_.columns[0]);
    const auto pair = std::find_if(c_.terms.begin(), c_.terms.end(), [&](int axis) {
      return address.coefficient(axis) == 1 && extent(axis) % word_ == 0;
    });
    if (pair == c_.terms.end() || point == 1) return false;
    std::rotate(pair, pair + 1, c_.terms.end());
    if (!c_.columns.empty()) c_.point = point;
    return true;
  }

  // --- the panel --------------------------------------------------------------------------------------------------

  void make_panel() {
    c_.block_rows = c_.columns.empty() ? 1 : extent(c_.columns[0]);
    Access read = data();
    std::vector<std::int64_t> extents = nest().extents();
    put_terms_inside();
    if (!c_.columns.empty()) find_taps(read, extents, 0);
    if (has_lines()) find_taps(read, extents, c_.columns.size() - 1);
    if (word_ > 1) make_words(read, extents);
    c_.can_pair = can_pair();
    c_.paired = c_.can_pair && tuning_.pairs != NestTuning::Switch::kOff;
    choose_block(extents);
    const bool wanted = tuning_.pairs == NestTuning::Switch::kOn;
    const bool fits = c_.block_rows % 2 == 0 || c_.blocks == 1;
    if (c_.paired && (wanted ? !fits : !pairs_pay())) {
      c_.paired = false;
      choose_block(extents);
    }
    build_fill(read, extents);
  }

  // Whether tiles are parts of lines of the innermost column axis, so that taps slide along it, too.
  bool has_lines() const {
    return c_.terms_inside && c_.precision == Precision::kInt8 && c_.columns.size() > 1 &&
           extent(c_.columns.back()) >= kLeastLine;
  }

  // Slides: a summed axis on which the data depends through u = s*h + c*a alone, h a column axis.
  void find_taps(Access& read, std::vector<std::int64_t>& extents, std::size_t column) {
    for (std::size_t t = 0; t < c_.terms.size();) {
      if (word_ > 1 && c_.terms.size() == 1) return;  // words have terms
      if (c_.terms_inside && t + 1 == c_.terms.size()) return;
      const int tap = c_.terms[t];
      const auto slides = possible_slides(read, c_.columns[column], tap);
      const bool found = std::any_of(slides.begin(), slides.end(), [&](const auto& slide) {
        return slide_tap(read, extents, tap, column, slide.first, slide.second) ||
               keep_tap(read, extents, tap, column, slide.first, slide.second);
      });
      if (found) {
        c_.terms.erase(c_.terms.begin() + static_cast<std::ptrdiff_t>(t));
      } else {
        ++t;
      }
    }
  }

  // With h = u - step * (a div phases), the data may depend on u and a mod phases alone, which is what is left of a.
  bool slide_tap(Access& read, std::vector<std::int64_t>& extents, int tap, std::size_t column,
                 std::int64_t phases, std::int64_t step) {
    const int place = c_.columns[column];
    const std::int64_t taps = extents[at(tap)];
    if (phases > 1 && taps <= phases) return false;
    const int turn = static_cast<int>(extents.size());  // a div phases
    std::vector<std::int64_t> wider = extents;
    wider[at(place)] += step * ((taps - 1) / phases);
    wider[at(tap)] = phases;
    std::vector<Index> values;
    for (int a = 0; a < turn; ++a) values.push_back(Index::axis(a));
    values[at(place)] = values[at(place)] - Index::axis(turn) * step;
    values[at(tap)] = values[at(tap)] + Index::axis(turn) * phases;
    wider.push_back((taps - 1) / phases + 1);
    if (phases == 1) values[at(tap)] = Index::axis(turn);
    Access slid = substituted(read, wider, values);
    if (depends_on(slid, turn)) return false;
    wider.pop_back();
    if (phases > 1 && column > 0 && step == 1 && c_.line_stride == 1) {
      put_in_turns(read, extents, tap, column, phases);
      return true;
    }
    read = std::move(slid);
    extents = std::move(wider);
    c_.taps.push_back(tap);
    c_.slides.push_back({column, step, phases, 0});
    return true;
  }

  // Of u = s*w + a alone, with all u side by side as they are in the data: columns are s places apart.
  void put_in_turns(Access& read, std::vector<std::int64_t>& extents, int tap, std::size_t column,
                    std::int64_t stride) {
    const int place = c_.columns[column];
    std::vector<std::int64_t> wider = extents;
    wider[at(place)] = stride * (extents[at(place)] - 1) + extents[at(tap)];
    wider[at(tap)] = 1;
    std::vector<Index> values;
    for (std::size_t a = 0; a < extents.size(); ++a)
      values.push_back(Index::axis(static_cast<int>(a)));
    values[at(place)] = Index();
    values[at(tap)] = Index::axis(place);
    read = substituted(read, wider, values);
    extents = std::move(wider);
    c_.line_stride = stride;
    c_.taps.push_back(tap);
    c_.slides.push_back({column, 1, 1, 0, false});
  }

  // The data depends on u = h + step * a and on a itself, as on what was computed for each tap before: a stays in the
  // panel, where its terms follow each other in memory, and every place u has those of all taps.
  bool keep_tap(Access& read, std::vector<std::int64_t>& extents, int tap, std::size_t column,
                std::int64_t phases, std::int64_t step) {
    if (!has_lines() || phases != 1) return false;
    const int place = c_.columns[column];
    std::vector<std::int64_t> wider = extents;
    wider[at(place)] += step * (extents[at(tap)] - 1);
    std::vector<Index> values;
    for (std::size_t a = 0; a < extents.size(); ++a)
      values.push_back(Index::axis(static_cast<int>(a)));
    values[at(place)] = values[at(place)] - Index::axis(tap) * step;
    Access slid = substituted(read, wider, values);
    const Index address = flat_address(program_, nest(), slid);
    std::int64_t inside = 1;
    for (const int axis : c_.terms) inside *= axis == tap ? 1 : extent(axis);
    if (in_conditions(slid, tap) || !only_affine(address, tap) ||
        address.coefficient(tap) != inside)
      return false;
    read = std::move(slid);
    extents = std::move(wider);
    c_.taps.push_back(tap);
    c_.slides.push_back({column, step, 1, 0, true});
    return true;
  }

  // Vectors over rows take a column from anywhere, so the panel has the order of the data: terms inside of columns where
  // they lie side by side.
  void put_terms_inside() {
    const Index stored = flat_address(program_, nest(), nest().store);
    if (c_.columns.empty() || stored.coefficient(c_.columns.back()) == 1) return;
    const Index address = flat_address(program_, nest(), data());
    const auto inner = std::find_if(c_.terms.begin(), c_.terms.end(), [&](int axis) {
      return address.coefficient(axis) == 1 && only_affine(address, axis) &&
             (extent(axis) >= kLeastInside || (word_ == 4 && extent(axis) == word_));
    });
    if (inner == c_.terms.end()) return;
    std::rotate(inner, inner + 1, c_.terms.end());
    c_.terms_inside = true;
  }

  // The last axis of the terms becomes one that has whole words.
  void make_words(Access& read, std::vector<std::int64_t>& extents) {
    const auto words = [&](int axis) { return (extent(axis) + word_ - 1) / word_; };
    if (!c_.terms_inside) {
      const Index address = flat_address(program_, nest(), data());
      const auto cost = [&](int axis) {
        return static_cast<double>(words(axis) * word_) / static_cast<double>(extent(axis));
      };
      const auto worse = [&](int a, int b) {
        if (cost(a) != cost(b)) return cost(a) > cost(b);
        // Neighbours in memory are expensive to part.
        return std::abs(address.coefficient(a)) < std::abs(address.coefficient(b));
      };
      const auto best = std::max_element(c_.terms.begin(), c_.terms.end(), worse);
      std::rotate(best, best + 1, c_.terms.end());
    }
    const int axis = c_.terms.back();
    const std::int64_t size = extent(axis), whole = words(axis) * word_;
    if (size == whole) return;
    const Condition inside{Index::axis(axis), size};
    for (Access* access : {&read, &c_.nest.operands[c_.data], &c_.nest.operands[c_.weight]})
      access->conditions.insert(access->conditions.begin(), inside);
    c_.nest.axes[at(axis)].extent = whole;
    extents[at(axis)] = whole;
  }

  // Winograd's F(2, 3): two results of three neighbouring taps take four products.
  bool can_pair() const {
    if (word_ > 1 || c_.terms_inside || c_.columns.empty() || c_.taps.size() != 1) return false;
    const Index stored = flat_address(program_, nest(), nest().store);
    return extent(c_.taps[0]) == 3 && c_.slides[0].step == 1 && c_.slides[0].phases == 1 &&
           stored.coefficient(c_.columns.back()) == 1 && c_.row_count() >= kLanes &&
           c_.term_count() >= kLeastPairTerms &&
           c_.column_count() * c_.product(c_.slices) >= kLeastPairColumns;
  }

  bool pairs_pay() const {
    if (c_.block_rows % 2 != 0 && c_.blocks > 1) return false;
    const std::int64_t lanes = (c_.block_columns() + kLanes - 1) / kLanes * kLanes;
    const std::int64_t plain = 3 * extent(c_.columns[0]) * c_.width();
    return static_cast<double>(4 * lanes * c_.blocks) <= kMostPairCost * static_cast<double>(plain);
  }

  void choose_block(const std::vector<std::int64_t>& extents) {
    c_.point = c_.terms_inside ? c_.term_count() * kept_count() : word_;
    if (c_.columns.empty()) return;
    c_.block_rows = extent(c_.columns[0]);
    c_.blocks = 1;
    c_.private_panel = false;
    const std::int64_t rows = extent(c_.columns[0]);
    const std::int64_t halo = extents[at(c_.columns[0])] - rows;
    std::int64_t row_elements = c_.term_count() * kept_count();
    for (std::size_t c = 1; c < c_.columns.size(); ++c) row_elements *= extents[at(c_.columns[c])];
    for (const Contraction::Slide& slide : c_.slides) row_elements *= slide.phases;
    const std::int64_t whole = row_elements * (rows + halo) * c_.slice_count();
    const std::int64_t weights = c_.row_count() * c_.term_count() * c_.tap_count();
    const Index stored = flat_address(program_, nest(), nest().store);
    const bool in_steps = c_.terms_inside || stored.coefficient(c_.columns.back()) == 1;
    if (!in_steps || !only_affine(stored, c_.columns[0])) {
      check_block(tuning_.block <= 0);
      return;
    }
    c_.possible_blocks.clear();
    for (std::int64_t size = rows; size > 0; --size) {
      if (rows % size == 0 && (size < rows || c_.slice_count() > 1))
        c_.possible_blocks.push_back(size);
    }
    if (tuning_.block == NestTuning::kWhole) return;
    if (tuning_.block > 0) {
      check_block(rows % tuning_.block == 0);
      c_.block_rows = tuning_.block;
      c_.blocks = rows / c_.block_rows;
      c_.private_panel = c_.blocks * c_.slice_count() > 1;
      return;
    }
    if (whole <= cache_elements_ || weights > whole) return;
    std::int64_t largest = rows;
    const auto fits = [&](std::int64_t size) {
      return rows % size == 0 && (!c_.paired || rows % 2 != 0 || size % 2 == 0);
    };
    while (!fits(largest) || ((largest + halo) * row_elements > 2 * cache_elements_ &&
                              largest > 4 * std::max<std::int64_t>(halo, 1)))
      --largest;
    c_.block_rows = largest;
    for (std::int64_t size = largest; 2 * size >= largest; --size) {
      if (fits(size) && block_cost(size, halo) < block_cost(c_.block_rows, halo))
        c_.block_rows = size;
    }
    if (c_.paired && c_.block_rows % 2 != 0 && c_.block_rows < rows)
      choose_even_block(rows, halo, row_elements);
    c_.blocks = parts_of(rows, c_.block_rows);
    c_.private_panel = c_.blocks * c_.slice_count() > 1;
    if (!c_.private_panel) c_.block_rows = rows;
  }

  // Pairs of rows where no even number divides the rows: the last block computes some that are not there.
  void choose_even_block(std::int64_t rows, std::int64_t halo, std::int64_t row_elements) {
    std::int64_t largest = rows - 1;
    while (largest % 2 != 0 || ((largest + halo) * row_elements > 2 * cache_elements_ &&
                                largest > 4 * std::max<std::int64_t>(halo, 1)))
      --largest;
    if (largest < 2) return;
    c_.block_rows = largest;
    for (std::int64_t size = largest; size > 0 && 2 * size >= largest; size -= 2) {
      if (block_cost(size, halo) < block_cost(c_.block_rows, halo)) c_.block_rows = size;
    }
  }

  // Taps that a column of the panel has terms of.
  std::int64_t kept_count() const {
    std::int64_t count = 1;
    for (std::size_t t = 0; t < c_.taps.size(); ++t)
      count *= c_.slides[t].kept ? extent(c_.taps[t]) : 1;
    return count;
  }

  void check_block(bool is_possible) const {
    if (is_possible) return;
    throw UserError("the tuning has a block of " + std::to_string(tuning_.block) +
                    " rows\n  expected: a divisor of the outermost axis of columns, where threads "
                    "can have panels of their own");
  }

  // What a block of so many rows costs in proportion: threads that wait for others with more blocks, rows that
  // neighbouring blocks both have, lanes that are not used.
  double block_cost(std::int64_t size, std::int64_t halo) const {
    const std::int64_t rows = extent(c_.columns[0]), blocks = parts_of(rows, size);
    const std::int64_t units = blocks * c_.slice_count();
    double cost = 1 + kFillShare * static_cast<double>(halo) / static_cast<double>(size);
    cost *= static_cast<double>(blocks * size) / static_cast<double>(rows);
    for (const std::int64_t threads : {2, 4}) {
      const std::int64_t most = (units + threads - 1) / threads;
      cost *= static_cast<double>(most * threads) / static_cast<double>(units);
    }
    const std::int64_t columns = (c_.paired ? (size + 1) / 2 : size) * c_.width();
    const std::int64_t lanes = (columns + kLanes - 1) / kLanes * kLanes;
    const double used = static_cast<double>(lanes) / static_cast<double>(columns);
    return cost * (c_.paired ? used : std::min(kMostLaneCost, used));
  }

  // Of the outermost column axis, in the panel of a block.
  std::int64_t panel_rows(const std::vector<std::int64_t>& extents) const {
    return c_.block_rows + extents[at(c_.columns[0])] - extent(c_.columns[0]);
  }

  void build_fill(const Access& read, const std::vector<std::int64_t>& extents) {
    LoopNest& fill = c_.fill;
    // The old axes in terms of the panel's. Summed axes and rows that the data does not know stay zero.
    std::vector<Index> values(nest().axes.size());
    const auto add = [&](const std::string& name, std::int64_t size) {
      fill.axes.push_back({name, size, false});
      c_.panel_shape.push_back(size);
      return Index::axis(static_cast<int>(fill.axes.size()) - 1);
    };
    Index block;
    if (c_.blocks > 1) block = add("block", c_.blocks);
    const auto add_all = [&](const std::vector<int>& axes) {
      for (const int axis : axes) values[at(axis)] = add(nest().axes[at(axis)].name, extent(axis));
    };
    add_all(c_.groups);
    add_all(c_.slices);
    // Neighbouring terms that share words come last.
    std::vector<int> outer = c_.terms;
    const bool parts = word_ > 1 && !c_.terms_inside;
    if (parts) outer.pop_back();
    if (!c_.terms_inside) add_all(outer);
    if (parts) {
      const int axis = c_.terms.back();
      values[at(axis)] = add(nest().axes[at(axis)].name, extent(axis) / word_) * word_;
    }
    for (std::size_t t = 0; t < c_.taps.size(); ++t) {
      if (c_.slides[t].phases == 1) continue;
      const int axis = c_.taps[t];
      values[at(axis)] = add(nest().axes[at(axis)].name, c_.slides[t].phases);
    }
    c_.panel_columns.clear();
    for (std::size_t c = 0; c < c_.columns.size(); ++c)
      c_.panel_columns.push_back(c == 0 ? panel_rows(extents) : extents[at(c_.columns[c])]);
    for (std::size_t c = 0; c < c_.columns.size(); ++c) {
      const int axis = c_.columns[c];
      const std::string& name = nest().axes[at(axis)].name;
      if (c > 0) {
        values[at(axis)] = add(name, c_.panel_columns[c]);
        continue;
      }
      if (c_.paired) {
        const Index odd = add("odd", 2);
        values[at(axis)] = add(name, (c_.block_rows + 1) / 2 + 1) * 2 + odd + block * c_.block_rows;
        continue;
      }
      values[at(axis)] = add(name, panel_rows(extents)) + block * c_.block_rows;
    }
    if (c_.terms_inside) {
      std::int64_t elements = c_.term_count();
      for (std::size_t t = c_.taps.size(); t-- > 0;) {
        if (!c_.slides[t].kept) continue;
        c_.slides[t].phase_elements = elements;
        elements *= extent(c_.taps[t]);
      }
      for (std::size_t t = 0; t < c_.taps.size(); ++t)
        if (c_.slides[t].kept) add_all({c_.taps[t]});
      add_all(c_.terms);
    }
    if (parts) values[at(c_.terms.back())] = values[at(c_.terms.back())] + add("part", word_);
    fill.outputs = fill.axes.size();
    std::int64_t elements = c_.columns.empty() ? c_.point : c_.panel_step(0) * c_.panel_columns[0];
    for (std::size_t t = c_.taps.size(); t-- > 0;) {
      if (c_.slides[t].kept) continue;
      c_.slides[t].phase_elements = elements;
      elements *= c_.slides[t].phases;
    }
    for (std::size_t a = 0; a < fill.outputs; ++a)
      fill.store.index.push_back(Index::axis(static_cast<int>(a)));
    Access filled = read;
    // The last row of an odd number has a partner that is not there, and the last block may have more such rows.
    if (c_.paired && (c_.block_rows % 2 != 0 || c_.has_rest())) {
      const int axis = c_.columns[0];
      filled.conditions.insert(filled.conditions.begin(), {Index::axis(axis), extents[at(axis)]});
    }
    fill.operands.push_back(substituted(filled, fill.extents(), values));
  }

  const LoopProgram& program_;
  const NestTuning& tuning_;
  std::int64_t word_;
  std::int64_t cache_elements_;
  Element data_element_;
  Contraction c_;
};

}  // namespace

std::optional<Contraction> match_contraction(const LoopProgram& program, const LoopNest& nest,
                                             std::int64_t cache_floats, Precision precision,
                                             Element data, const NestTuning& tuning) {
  return Matcher(program, nest, cache_floats, precision, data, tuning).run();
}

}  // namespace syno::cpp
