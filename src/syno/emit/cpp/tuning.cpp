#include "syno/emit/cpp/tuning.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/cpp/schedule.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno::cpp {
namespace {

// Tiles of more rows or columns do not fit into registers.
constexpr std::int64_t kMostTile = 16;
constexpr std::int64_t kMostBlock = std::int64_t{1} << 31;
constexpr int kMostNest = 1 << 16;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Tuning run() {
    Tuning tuning;
    if (trimmed(text_).empty()) return tuning;
    for (const std::string_view part : parts(text_, ';')) {
      const std::size_t colon = part.find(':');
      if (colon == std::string_view::npos) throw complaint("the number of a nest and ':'", part);
      const std::int64_t nest = number(trimmed(part.substr(0, colon)), 0, kMostNest);
      if (tuning.count(static_cast<int>(nest)) > 0) throw complaint("each nest once", part);
      NestTuning& found = tuning[static_cast<int>(nest)];
      for (const std::string_view choice : parts(part.substr(colon + 1), ' ')) {
        if (!choice.empty()) read(found, choice);
      }
    }
    return tuning;
  }

 private:
  void read(NestTuning& tuning, std::string_view choice) {
    using Form = NestTuning::Form;
    using Over = NestTuning::Over;
    using Switch = NestTuning::Switch;
    using Outside = NestTuning::Outside;
    const std::size_t equals = std::min(choice.find('='), choice.size());
    const std::string_view name = choice.substr(0, equals);
    const std::string_view value = choice.substr(std::min(equals + 1, choice.size()));
    if (name == "form") {
      tuning.form = one_of(choice, value, "product", Form::kProduct, "rows", Form::kRows);
    } else if (name == "over") {
      tuning.over = one_of(choice, value, "columns", Over::kColumns, "rows", Over::kRows);
    } else if (name == "pairs") {
      tuning.pairs = one_of(choice, value, "on", Switch::kOn, "off", Switch::kOff);
    } else if (name == "order") {
      tuning.order = one_of(choice, value, "rows", Outside::kRows, "columns", Outside::kColumns);
    } else if (name == "rows") {
      tuning.rows = number(value, 1, kMostTile);
    } else if (name == "width") {
      tuning.width = number(value, 1, kMostTile);
    } else if (name == "block") {
      tuning.block = value == "whole" ? NestTuning::kWhole : number(value, 1, kMostBlock);
    } else {
      throw complaint("one of form, over, rows, width, block, pairs, order", choice);
    }
  }

  template <class Value>
  Value one_of(std::string_view choice, std::string_view value, std::string_view first, Value one,
               std::string_view second, Value other) const {
    if (value == first) return one;
    if (value == second) return other;
    throw complaint(std::string(first) + " or " + std::string(second), choice);
  }

  std::int64_t number(std::string_view text, std::int64_t least, std::int64_t most) const {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
      throw complaint("a number from " + std::to_string(least) + " to " + std::to_string(most),
                      text);
    return value;
  }

  static std::vector<std::string_view> parts(std::string_view text, char between) {
    std::vector<std::string_view> found;
    while (true) {
      const std::size_t end = text.find(between);
      found.push_back(trimmed(text.substr(0, end)));
      if (end == std::string_view::npos) return found;
      text = text.substr(end + 1);
    }
  }

  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
  }

  UserError complaint(const std::string& expected, std::string_view found) const {
    return Complaint("the tuning '" + std::string(text_) + "' is malformed")
        .expected(expected, "'" + std::string(found) + "'")
        .hint("a tuning is such as 0: over=rows width=8; 2: block=14")
        .error();
  }

  std::string_view text_;
};

std::string field(std::string_view name, const std::string& value) {
  return "\"" + std::string(name) + "\": " + value;
}

std::string boolean(bool value) {
  return value ? "true" : "false";
}

// The extents of a product.
std::vector<std::string> product_fields(const Contraction& c, bool over_columns) {
  const auto number = [](std::string_view name, std::int64_t value) {
    return field(name, std::to_string(value));
  };
  std::vector<std::string> blocks;
  for (const std::int64_t size : c.possible_blocks) blocks.push_back(std::to_string(size));
  return {
      number("rows", c.row_count()),
      number("terms", c.term_count()),
      number("taps", c.tap_count()),
      number("columns", c.column_count()),
      number("slices", c.slice_count()),
      number("width", c.width()),
      number("block", c.private_panel ? c.block_rows : 0),
      field("blocks", "[" + join(blocks, ", ") + "]"),
      field("paired", boolean(c.paired)),
      field("can_pair", boolean(c.can_pair)),
      field("over_columns", boolean(over_columns)),
      field("in_place", boolean(c.in_place)),
  };
}

}  // namespace

Tuning parse_tuning(std::string_view text) {
  return Parser(text).run();
}

}  // namespace syno::cpp

namespace syno {

std::string cpp_choices(const Plan& plan) {
  const cpp::Schedule found = cpp::schedule(plan, CppOptions{});
  std::vector<std::string> nests;
  for (const cpp::Phase& phase : found.phases) {
    if (phase.nest < 0) continue;
    const bool is_product = phase.contraction.has_value();
    std::vector<std::string> fields{
        cpp::field("nest", std::to_string(phase.nest)),
        cpp::field("macs", std::to_string(phase.macs)),
        cpp::field("form", is_product ? "\"product\"" : "\"rows\""),
        cpp::field("forms", phase.possible ? "[\"product\", \"rows\"]" : "[\"rows\"]"),
    };
    if (phase.possible) {
      const cpp::Contraction& c = is_product ? *phase.contraction : *phase.possible;
      const std::vector<std::string> more =
          cpp::product_fields(c, cpp::columns_side_by_side(found.program, c));
      fields.insert(fields.end(), more.begin(), more.end());
    }
    nests.push_back("{" + join(fields, ", ") + "}");
  }
  return "[" + join(nests, ", ") + "]";
}

}  // namespace syno
