#include "syno/support/seal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "syno/support/sha256.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::size_t kSealDigits = 32;

bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

void append_unit(std::string& text, std::uint32_t unit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  text += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[unit >> shift & 15];
}

void append_point(std::string& text, std::uint32_t point) {
  switch (point) {
    case '"': text += "\\\""; return;
    case '\\': text += "\\\\"; return;
    case '\b': text += "\\b"; return;
    case '\f': text += "\\f"; return;
    case '\n': text += "\\n"; return;
    case '\r': text += "\\r"; return;
    case '\t': text += "\\t"; return;
    default: break;
  }
  if (point < 0x80 && is_plain(static_cast<char>(point))) {
    text += static_cast<char>(point);
  } else if (point < 0x10000) {
    append_unit(text, point);
  } else {
    append_unit(text, 0xD800 + ((point - 0x10000) >> 10));
    append_unit(text, 0xDC00 + ((point - 0x10000) & 0x3FF));
  }
}

// As Python's repr writes a finite number: an exponent below 1e-4 and from 1e16 on.
void append_number(std::string& text, double value) {
  std::array<char, 32> written;
  const auto end = std::to_chars(written.data(), written.data() + written.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  std::string_view number(written.data(), static_cast<std::size_t>(end - written.data()));
  const std::size_t mark = number.find('e');
  int exponent = 0;
  const char* digits_of_exponent = number.data() + mark + (number[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, end, exponent);
  if (exponent < -4 || exponent >= 16) {
    text += number;
    return;
  }
  if (number[0] == '-') {
    text += '-';
    number.remove_prefix(1);
  }
  std::string digits(1, number[0]);
  if (number[1] == '.') digits += number.substr(2, number.find('e') - 2);
  if (exponent < 0) {
    text += "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    return;
  }
  const auto whole = static_cast<std::size_t>(exponent + 1);
  if (digits.size() <= whole) digits.resize(whole + 1, '0');
  text += digits.insert(whole, 1, '.');
}

}  // namespace

void Seal::begin_value() {
  if (!text_.empty()) text_ += ',';
}

Seal& Seal::add(std::string_view text) {
  begin_value();
  text_ += '"';
  while (true) {
    const auto plain = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    text_ += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    std::uint32_t point = length == 0   ? 0xDC00U + first
                          : length == 1 ? first
                                        : first & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i)
      point = point << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
    append_point(text_, point);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
  return *this;
}

Seal& Seal::add(std::u32string_view text) {
  begin_value();
  text_ += '"';
  for (const char32_t point : text) append_point(text_, point);
  text_ += '"';
  return *this;
}

Seal& Seal::add(std::int64_t value) {
  begin_value();
  text_ += std::to_string(value);
  return *this;
}

Seal& Seal::add(double value) {
  begin_value();
  if (std::isnan(value)) {
    text_ += "NaN";
  } else if (std::isinf(value)) {
    text_ += value < 0 ? "-Infinity" : "Infinity";
  } else {
    append_number(text_, value + 0.0);
  }
  return *this;
}

Seal& Seal::add_null() {
  return add_integer("null");
}

Seal& Seal::add_integer(std::string_view digits) {
  begin_value();
  text_ += digits;
  return *this;
}

Seal& Seal::add_bytes(std::string_view bytes) {
  return add(std::string_view(hex(sha256(bytes))));
}

std::string Seal::finish() {
  std::string digest = hex(sha256("[" + text_ + "]")).substr(0, kSealDigits);
  text_.clear();
  return digest;
}

}  // namespace syno
