#include "syno/sizes/size.h"

#include <algorithm>
#include <cstdlib>

#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

constexpr int kMaxPower = 100;

std::int8_t checked_power(int power) {
  if (power > kMaxPower || power < -kMaxPower) {
    throw UserError("a power of " + std::to_string(power) + " in a size is outside -" +
                    std::to_string(kMaxPower) + ".." + std::to_string(kMaxPower));
  }
  return static_cast<std::int8_t>(power);
}

// What a size cannot go on with, in the words that write it right. `written` is the size before it.
void refuse_sign(Cursor& cursor, const std::string& written) {
  const std::size_t column = cursor.column();
  if (cursor.accept('/')) {
    if (!cursor.at_name()) {
      cursor.fail_at(
          "a size has no '/': give the number a name, as in \"s=2: 2\", and write s^-1*" + written,
          column);
    }
    const std::string name = cursor.name("of a variable");
    std::int64_t power =
        cursor.accept('^') && cursor.at_integer() ? cursor.integer("as a power") : 1;
    if (power == 0 || power > kMaxPower || power < -kMaxPower) power = 1;
    cursor.fail_at(
        "a size has no '/': write " + name + "^" + std::to_string(-power) + "*" + written, column);
  }
  for (const char sign : {'+', '-'}) {
    if (cursor.peek() != sign) continue;
    cursor.fail_at("sizes are products of variables, without '" + std::string(1, sign) +
                       "': introduce a separate variable for a size that is a sum",
                   column);
  }
}

// Calls visit(name, power, column) for every factor.
template <class Visit>
void read_factors(Cursor& cursor, Visit visit) {
  if (cursor.peek() >= '0' && cursor.peek() <= '9') {
    const std::size_t column = cursor.column();
    if (cursor.integer("") != 1) {
      cursor.fail_at("a size is a product of variables: give the number a name, as in \"k=3: 2\"",
                     column);
    }
    return;
  }
  std::string written;
  do {
    const std::size_t column = cursor.column();
    if (!written.empty() && cursor.accept('*')) {
      std::string right = written + "^2";
      if (cursor.at_integer())
        right = written + "^" + std::to_string(cursor.integer("as a power"));
      else if (cursor.at_name())
        right = written + "*" + cursor.name("of a variable") + " for a product, " + right +
                " for a power";
      cursor.fail_at("a power is written with '^', not '**': write " + right, column - 1);
    }
    const std::string name = cursor.name("of a variable");
    std::int64_t power = 1;
    if (cursor.accept('^')) {
      const std::size_t power_column = cursor.column();
      power = cursor.integer("as the power of '" + name + "'");
      if (power == 0 || power > kMaxPower || power < -kMaxPower) {
        cursor.fail_at("the power of '" + name + "' must be a non-zero integer within -" +
                           std::to_string(kMaxPower) + ".." + std::to_string(kMaxPower) + ", got " +
                           std::to_string(power),
                       power_column);
      }
    }
    visit(name, static_cast<int>(power), column);
    written +=
        (written.empty() ? "" : "*") + name + (power == 1 ? "" : "^" + std::to_string(power));
  } while (cursor.accept('*'));
  refuse_sign(cursor, written);
}

}  // namespace

Size Size::variable(std::size_t index, int power) {
  ensure(index < kMaxVariables, "Size::variable: index outside the table");
  Size size;
  size.powers_[index] = checked_power(power);
  return size;
}

int Size::variable_count() const {
  int count = 0;
  for (const std::int8_t power : powers_) count += power != 0;
  return count;
}

int Size::total_power() const {
  int total = 0;
  for (const std::int8_t power : powers_) total += std::abs(power);
  return total;
}

bool Size::is_below_one() const {
  return !is_one() &&
         std::none_of(powers_.begin(), powers_.end(), [](std::int8_t power) { return power > 0; });
}

Size Size::inverse() const {
  Size result;
  for (std::size_t i = 0; i < kMaxVariables; ++i)
    result.powers_[i] = static_cast<std::int8_t>(-powers_[i]);
  return result;
}

Size operator*(const Size& a, const Size& b) {
  Size result;
  int largest = 0;
  for (std::size_t i = 0; i < kMaxVariables; ++i) {
    const int power = a.powers_[i] + b.powers_[i];
    largest = std::max(largest, std::abs(power));
    result.powers_[i] = static_cast<std::int8_t>(power);
  }
  if (largest > kMaxPower) checked_power(largest);
  return result;
}

std::optional<std::int64_t> Size::evaluate(const Values& values) const {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (int p = 0; p < powers_[i]; ++p)
      numerator = checked_multiply(numerator, values[i], "a size");
    for (int p = 0; p > powers_[i]; --p)
      denominator = checked_multiply(denominator, values[i], "the denominator of a size");
  }
  ensure(denominator != 0, "Size::evaluate: a variable has no value");
  if (numerator <= 0 || numerator % denominator != 0) return std::nullopt;
  return numerator / denominator;
}

std::optional<std::int64_t> Size::extent(const Values& values) const {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (int p = 0; p < powers_[i]; ++p) {
      if (__builtin_mul_overflow(numerator, values[i], &numerator)) return std::nullopt;
    }
    for (int p = 0; p > powers_[i]; --p) {
      if (__builtin_mul_overflow(denominator, values[i], &denominator)) return std::nullopt;
    }
  }
  if (denominator == 0 || numerator <= 0 || numerator % denominator != 0) return std::nullopt;
  return numerator / denominator;
}

std::string Size::text(const Variables& variables) const {
  std::vector<std::string> factors;
  for (std::size_t i = 0; i < kMaxVariables; ++i) {
    if (powers_[i] == 0) continue;
    ensure(i < variables.count(), "Size::text: the size belongs to another table");
    factors.push_back(variables.name(i) +
                      (powers_[i] == 1 ? "" : "^" + std::to_string(powers_[i])));
  }
  return factors.empty() ? "1" : join(factors, "*");
}

std::uint64_t Size::hash(const Variables& variables) const {
  Hasher hasher("size");
  for (std::size_t i = 0; i < variables.count(); ++i) {
    if (powers_[i] != 0) hasher.add(variables.name_hash(i)).add(static_cast<int>(powers_[i]));
  }
  return hasher.finish().low;
}

Size Size::translate(const Variables& from, const Variables& to) const {
  Size result;
  for (std::size_t i = 0; i < from.count(); ++i) {
    if (powers_[i] != 0) result.powers_[to.index(from.name(i))] = powers_[i];
  }
  return result;
}

Size Size::parse(std::string_view text, const Variables& variables) {
  Cursor cursor(text, "size");
  const Size size = parse(cursor, variables);
  cursor.expect_end();
  return size;
}

Size Size::parse(Cursor& cursor, const Variables& variables) {
  Size size;
  read_factors(cursor, [&](const std::string& name, int power, std::size_t column) {
    const auto index = variables.find(name);
    if (!index) {
      cursor.fail_at("unknown variable '" + name + "'; known variables: " +
                         (variables.count() == 0 ? "none" : join(variables.names(), ", ")),
                     column);
    }
    size = size * variable(*index, power);
  });
  return size;
}

std::vector<std::string> Size::names_in(std::string_view text) {
  Cursor cursor(text, "size");
  std::vector<std::string> names;
  read_factors(cursor, [&](const std::string& name, int, std::size_t) { names.push_back(name); });
  cursor.expect_end();
  return names;
}

}  // namespace syno
