#include "syno/support/text.h"

#include <charconv>
#include <locale>
#include <sstream>

#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string number_text(double value) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(15);
  text << value;
  return text.str();
}

std::string digits_text(double value) {
  return is_whole(value) ? std::to_string(static_cast<std::int64_t>(value)) : number_text(value);
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  // Neither longer than need be, nor half of a surrogate pair, nor beyond Unicode.
  const unsigned second = byte(1);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return wrong ? 0 : length;
}

void Cursor::expect(char c, const std::string& why) {
  if (!accept(c)) fail("expected '" + std::string(1, c) + "' " + why + ", got " + found());
}

std::string Cursor::name(const std::string& why) {
  if (!at_name()) fail("expected a name " + why + ", got " + found());
  const std::size_t start = position_;
  while (position_ < text_.size() && is_name_rest(text_[position_])) ++position_;
  return std::string(text_.substr(start, position_ - start));
}

std::int64_t Cursor::integer(const std::string& why) {
  if (!at_integer()) fail("expected an integer " + why + ", got " + found());
  const std::size_t start = position_;
  if (text_[position_] == '-') ++position_;
  while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9')
    ++position_;
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text_.data() + start, text_.data() + position_, value);
  if (status == std::errc::result_out_of_range)
    fail_at("the integer does not fit in 64 bits", start + 1);
  if (status != std::errc() || end != text_.data() + position_) {
    fail_at("expected an integer " + why + ", got '-'", start + 1);
  }
  return value;
}

void Cursor::expect_end() {
  if (!at_end()) fail("expected the end, got " + found());
}

std::string Cursor::found() {
  if (at_end()) return "the end";
  // A whole character: the bytes that continue it in UTF-8 stand behind the first.
  std::size_t end = position_ + 1;
  while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80U) ++end;
  return "'" + std::string(text_.substr(position_, end - position_)) + "'";
}

void Cursor::fail_at(const std::string& message, std::size_t column) const {
  throw UserError(message + "\n  in " + what_ + " \"" + std::string(text_) + "\", column " +
                  std::to_string(column));
}

}  // namespace syno
