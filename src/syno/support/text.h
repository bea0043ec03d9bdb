// Small text helpers, and a cursor that all parsers share so that every error names a column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syno {

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::vector<std::string_view> split_lines(std::string_view text);
/// 1234567 -> "1,234,567".
std::string with_thousands(std::int64_t value);
/// 15 significant digits, without trailing zeros and in no locale: "2.5", "1e+20".
std::string number_text(double value);
/// The same, but with all digits of a whole number below 9e15.
std::string digits_text(double value);

/// How many bytes a character of UTF-8 takes that begins `text`; 0 where none does (RFC 3629, section 4).
std::size_t utf8_length(std::string_view text);

/// Reads a string from left to right. Errors point at a column, counted from 1.
class Cursor {
 public:
  /// `what` names the thing being read in messages, for example "shape".
  Cursor(std::string_view text, std::string what) : text_(text), what_(std::move(what)) {}

  bool at_end() {
    skip_spaces();
    return position_ >= text_.size();
  }
  char peek() {
    skip_spaces();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  /// Consumes `c` when it is next.
  bool accept(char c) {
    if (peek() != c || at_end()) return false;
    ++position_;
    return true;
  }
  void expect(char c, const std::string& why);
  bool at_name() {
    const char c = peek();
    return is_name_start(c);
  }
  /// A name: a letter or underscore, then letters, digits, underscores.
  std::string name(const std::string& why);
  bool at_integer() {
    const char c = peek();
    return (c >= '0' && c <= '9') || c == '-';
  }
  /// A decimal integer with optional minus sign; overflow is an error.
  std::int64_t integer(const std::string& why);
  void expect_end();
  std::size_t column() {
    skip_spaces();
    return position_ + 1;
  }
  const std::string& what() const { return what_; }
  std::string_view text() const { return text_; }

  /// Throws UserError: "<message>\n  in <what> "...", column N\n     ...^".
  [[noreturn]] void fail(const std::string& message) { fail_at(message, column()); }
  [[noreturn]] void fail_at(const std::string& message, std::size_t column) const;

  static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_name_rest(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

 private:
  void skip_spaces() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t'))
      ++position_;
  }
  std::string found();

  std::string_view text_;
  std::string what_;
  std::size_t position_ = 0;
};

}  // namespace syno
