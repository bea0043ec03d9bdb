// Size: a monomial of integer powers of variables, such as H, s^-1*C_in or k^2.
//
//     size   := '1' | factor ('*' factor)*
//     factor := name ('^' integer)?
//
// A size is 16 bytes, copied freely. Its exponents are counted in a variable table that whoever holds the size also
// holds; two sizes may be combined only when they belong to one table.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "syno/sizes/variables.h"
#include "syno/support/hash.h"
#include "syno/support/mix.h"
#include "syno/support/text.h"

namespace syno {

class Size {
 public:
  /// The empty monomial, 1.
  constexpr Size() = default;
  static Size variable(std::size_t index, int power = 1);

  int power(std::size_t index) const { return powers_[index]; }
  bool is_one() const { return *this == Size(); }
  /// Whether all powers are negative: such a size is an integer under no binding.
  bool is_below_one() const;
  /// How many variables have a non-zero power.
  int variable_count() const;
  /// The sum of absolute powers.
  int total_power() const;
  Size inverse() const;

  /// Throws UserError when a power leaves -100..100.
  friend Size operator*(const Size& a, const Size& b);
  friend Size operator/(const Size& a, const Size& b) { return a * b.inverse(); }
  friend auto operator<=>(const Size&, const Size&) = default;

  /// The value under a binding, or nothing when it is not a positive integer there. Throws UserError on overflow.
  std::optional<std::int64_t> evaluate(const Values& values) const;
  /// The same, but a value that does not fit in 64 bits is nothing too: no coordinate can have such an extent.
  std::optional<std::int64_t> extent(const Values& values) const;

  std::string text(const Variables& variables) const;
  /// Depends on names and powers only, not on the table.
  std::uint64_t hash(const Variables& variables) const;
  /// The same size in another table, which must know every variable of it.
  Size translate(const Variables& from, const Variables& to) const;

  /// Throws UserError with the column for malformed text and unknown variables.
  static Size parse(std::string_view text, const Variables& variables);
  /// Reads a size at `cursor`. Every name is looked up in `variables`.
  static Size parse(Cursor& cursor, const Variables& variables);
  /// Skips a size and returns the names in it; the first pass over text whose table is not known yet. Throws UserError
  /// also where all powers are negative.
  static std::vector<std::string> names_in(std::string_view text);

 private:
  std::array<std::int8_t, kMaxVariables> powers_{};
};

/// For tables in memory: it depends on the table of variables.
struct SizeHash {
  std::size_t operator()(const Size& size) const noexcept {
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(size);
    return static_cast<std::size_t>(table_hash(words[0], words[1]));
  }
};

}  // namespace syno
