// JSON of strangers (RFC 8259): a strict reader that ends on hostile input, and words for what it found.
//
// What is refused is refused with line and column: anything that is not JSON, a field given twice, text that is not
// UTF-8, nesting deeper than kMaxDepth, numbers of more than kMaxDigits characters, more than kMaxValues values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace syno::json {

inline constexpr std::size_t kMaxDepth = 100;
inline constexpr std::size_t kMaxDigits = 4300;
inline constexpr std::size_t kMaxValues = 2'000'000;

struct Value;
using List = std::vector<Value>;
using Field = std::pair<std::string, Value>;
using Object = std::vector<Field>;

struct Number {
  /// As it is written.
  std::string text;
  /// Where it is an integer of 64 bits.
  std::optional<std::int64_t> whole;
};
/// What JSON has no word for, in data that a caller gives as values: "a Python set".
struct Foreign {
  std::string text;
};

struct Value {
  std::variant<std::nullptr_t, bool, Number, std::string, List, Object, Foreign> content = nullptr;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&content);
  }
  bool is_null() const { return as<std::nullptr_t>() != nullptr; }
  /// A field of an object; nothing where there is none, or no object.
  const Value* field(std::string_view name) const;
};

/// Reads a document. `what` names it in messages, such as "the operator".
Value read(std::string_view text, const std::string& what);

/// What a value is in JSON's words, with the value where it is short: `the number 3`, `a list of 2`.
std::string described(const Value& value);
std::string described(std::string_view text);

/// A string as JSON writes it, in quotes.
std::string quoted(std::string_view text);

}  // namespace syno::json
