#include "syno/support/json.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno::json {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Code points, of text that is UTF-8.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

void append_utf8(std::string& text, std::uint32_t point) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
    return;
  }
  if (point < 0x800) {
    put(0xC0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xE0 | point >> 12);
    } else {
      put(0xF0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3F));
    }
    put(0x80 | (point >> 6 & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  Value document() {
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t length = utf8_length(text_.substr(at));
      if (length == 0) fail("it is not UTF-8", at);
      at += length;
    }
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    skip_spaces();
    Value result = value(0);
    skip_spaces();
    if (at_ != text_.size()) fail("Extra data", at_);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& why, std::size_t place) const {
    const std::string_view before = text_.substr(0, place);
    const std::size_t line_end = before.rfind('\n');
    const std::string_view line =
        line_end == std::string_view::npos ? before : before.substr(line_end + 1);
    throw UserError(what_ + " is not valid JSON: " + why + "\n  in line " +
                    std::to_string(std::count(before.begin(), before.end(), '\n') + 1) +
                    ", column " + std::to_string(characters(line) + 1));
  }

  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
  }
  bool accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Value value(std::size_t depth) {
    if (depth > kMaxDepth) fail("it is nested too deeply", at_);
    if (++values_ > kMaxValues)
      fail("it holds more than " + with_thousands(kMaxValues) + " values", at_);
    if (accept('{')) return {object(depth)};
    if (accept('[')) return {list(depth)};
    if (next() == '"') return {string()};
    if (next() == '-' || is_digit(next())) return {number()};
    if (accept("null")) return {};
    if (accept("true")) return {true};
    if (accept("false")) return {false};
    fail("Expecting value", at_);
  }

  List list(std::size_t depth) {
    List items;
    skip_spaces();
    if (accept(']')) return items;
    while (true) {
      items.push_back(value(depth + 1));
      skip_spaces();
      if (accept(']')) return items;
      if (!accept(',')) fail("Expecting ',' delimiter", at_);
      skip_spaces();
    }
  }

  Object object(std::size_t depth) {
    Object fields;
    skip_spaces();
    if (accept('}')) return fields;
    while (true) {
      if (next() != '"') fail("Expecting property name enclosed in double quotes", at_);
      std::string name = string();
      skip_spaces();
      if (!accept(':')) fail("Expecting ':' delimiter", at_);
      skip_spaces();
      fields.emplace_back(std::move(name), value(depth + 1));
      skip_spaces();
      if (accept('}')) break;
      if (!accept(',')) fail("Expecting ',' delimiter", at_);
      skip_spaces();
    }
    refuse_repeated(fields);
    return fields;
  }

  void refuse_repeated(const Object& fields) const {
    std::map<std::string_view, int> times;
    for (const auto& [name, value] : fields) ++times[name];
    if (times.size() == fields.size()) return;
    const auto twice = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& field) { return times[field.first] > 1; });
    throw UserError(what_ + "'s JSON gives the field '" + twice->first + "' twice in one object");
  }

  Number number() {
    const std::size_t begin = at_;
    accept('-');
    if (!is_digit(next())) fail("Expecting value", begin);
    if (!accept('0')) skip_digits();
    bool whole = true;
    // Only with a digit behind: otherwise what follows the integer is told to be wrong.
    const auto digit_at = [&](std::size_t place) {
      return place < text_.size() && is_digit(text_[place]);
    };
    if (next() == '.' && digit_at(at_ + 1)) {
      whole = false;
      ++at_;
      skip_digits();
    }
    if (next() == 'e' || next() == 'E') {
      const std::size_t sign = at_ + 1;
      const bool has_sign = sign < text_.size() && (text_[sign] == '+' || text_[sign] == '-');
      if (digit_at(sign + (has_sign ? 1 : 0))) {
        whole = false;
        at_ = sign + (has_sign ? 1 : 0);
        skip_digits();
      }
    }
    const std::string_view written = text_.substr(begin, at_ - begin);
    if (written.size() > kMaxDigits)
      fail("a number of more than " + std::to_string(kMaxDigits) + " digits", begin);
    Number result{std::string(written), std::nullopt};
    std::int64_t integer = 0;
    if (whole &&
        std::from_chars(written.data(), written.data() + written.size(), integer).ec == std::errc())
      result.whole = integer;
    return result;
  }
  void skip_digits() {
    while (is_digit(next())) ++at_;
  }

  std::string string() {
    const std::size_t begin = at_++;
    std::string result;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return result;
      }
      if (static_cast<unsigned char>(c) < 0x20) fail("Invalid control character at", at_);
      if (c == '\\') {
        escape(result, begin);
      } else {
        result += c;
        ++at_;
      }
    }
    fail("Unterminated string starting at", begin);
  }

  void escape(std::string& result, std::size_t begin) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t place = at_++;
    if (at_ == text_.size()) fail("Unterminated string starting at", begin);
    const char c = text_[at_++];
    if (c != 'u') {
      const std::size_t which = kNames.find(c);
      if (which == std::string_view::npos) fail("Invalid \\escape", place);
      result += kMeanings[which];
      return;
    }
    std::uint32_t point = unit();
    if (point >= 0xD800 && point < 0xDC00 && accept("\\u")) {
      const std::uint32_t low = unit();
      if (low >= 0xDC00 && low < 0xE000) {
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (point >= 0xD800 && point < 0xE000) fail("half of a surrogate pair", place);
    append_utf8(result, point);
  }

  // The four hexadecimal digits behind "\u".
  std::uint32_t unit() {
    std::uint32_t result = 0;
    const char* const begin = text_.data() + at_;
    const char* const end = begin + std::min<std::size_t>(4, text_.size() - at_);
    if (std::from_chars(begin, end, result, 16).ptr - begin != 4)
      fail("Invalid \\uXXXX escape", at_ - 1);
    at_ += 4;
    return result;
  }

  std::string_view text_;
  const std::string& what_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

const Value* Value::field(std::string_view name) const {
  const Object* fields = as<Object>();
  if (fields == nullptr) return nullptr;
  for (const auto& [known, value] : *fields) {
    if (known == name) return &value;
  }
  return nullptr;
}

Value read(std::string_view text, const std::string& what) {
  return Reader(text, what).document();
}

std::string described(std::string_view text) {
  constexpr std::size_t kLong = 40;
  return characters(text) <= kLong ? "the string \"" + std::string(text) + "\"" : "a long string";
}

std::string described(const Value& value) {
  constexpr std::size_t kLong = 200;
  if (value.is_null()) return "null";
  if (const bool* flag = value.as<bool>()) return *flag ? "true" : "false";
  if (const Number* number = value.as<Number>()) {
    const std::string& text = number->text;
    if (text.size() <= kLong) return "the number " + text;
    return "the number " + text.substr(0, kLong) + "... (" + std::to_string(text.size()) +
           " characters)";
  }
  if (const std::string* text = value.as<std::string>()) return described(*text);
  if (const List* items = value.as<List>()) return "a list of " + std::to_string(items->size());
  if (const Foreign* foreign = value.as<Foreign>()) return foreign->text;
  return "an object";
}

std::string quoted(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      result += "\\u00";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace syno::json
