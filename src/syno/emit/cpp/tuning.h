// What a caller chooses instead of the rules of the schedule, nest by nest, and what there is to choose.
//
// A tuning is a text, such as "0: over=rows width=8; 2: block=14 pairs=off". A number is that of a nest in the plan's
// loop program; what is not named is left to the rules:
//
//   form    product, rows       a matrix product, or loops over rows
//   over    columns, rows       what vectors lie over in a product
//   rows    number              rows of a tile: single ones, or vectors where these lie over rows
//   width   number              columns of a tile: vectors, or single ones where vectors lie over rows
//   block   number, whole       rows of the outermost column axis in a panel of a thread, or one panel for all threads
//   pairs   on, off             four products for six, of neighbouring rows
//   order   rows, columns       which tiles are outside
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "syno/plan/plan.h"

namespace syno::cpp {

/// Of one nest. Zero, and kAny, leave it to the rules.
struct NestTuning {
  enum class Form : std::uint8_t { kAny, kProduct, kRows };
  enum class Over : std::uint8_t { kAny, kColumns, kRows };
  enum class Switch : std::uint8_t { kAny, kOn, kOff };
  enum class Outside : std::uint8_t { kAny, kRows, kColumns };
  static constexpr std::int64_t kWhole = -1;

  Form form = Form::kAny;
  Over over = Over::kAny;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t block = 0;
  Switch pairs = Switch::kAny;
  Outside order = Outside::kAny;

  /// Whether the tiles of the product are not those of the rules.
  bool has_tiles() const {
    return over != Over::kAny || rows > 0 || width > 0 || order != Outside::kAny;
  }
};

/// By the number of the nest.
using Tuning = std::map<int, NestTuning>;

/// UserError for another text.
Tuning parse_tuning(std::string_view text);

}  // namespace syno::cpp

namespace syno {

/// The nests of a plan in emitted C++, and what a tuning may choose of them, as a JSON list of objects:
///
///   nest, macs            number of the nest, and its MACs
///   form                  "product" or "rows", as the rules choose
///   forms                 those that are possible
///   rows, terms, taps, columns, slices, width      extents of the product
///   blocks                rows of a block that are possible, the largest first; empty where there is only one panel
///   block                 the rows of a block, or 0 for one panel
///   paired, can_pair      whether rows are paired, and whether they can be
///   over_columns          whether vectors can lie over columns
///   in_place              whether the data is read where it is
std::string cpp_choices(const Plan& plan);

}  // namespace syno
