// The seal of a row of a database: a digest of its values, by which damage to them is noticed.
//
// It is the start of the SHA-256 of the values as a JSON list in ASCII, without spaces, numbers as Python writes them: what
// json.dumps(values, separators=(",", ":")) gives. Stored seals depend on every byte of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syno {

class Seal {
 public:
  /// Text in UTF-8; a byte that is none stands for half of a surrogate pair, as Python's "surrogateescape" reads it.
  Seal& add(std::string_view text);
  /// Text by its code points, which may be halves of surrogate pairs.
  Seal& add(std::u32string_view text);
  Seal& add(std::int64_t value);
  /// The shortest digits that give the value back. The sign of zero is left out, as databases do.
  Seal& add(double value);
  Seal& add_null();
  /// An integer of any length, by its decimal digits.
  Seal& add_integer(std::string_view digits);
  /// Bytes stand for their SHA-256.
  Seal& add_bytes(std::string_view bytes);

  /// 32 lower-case hexadecimal digits; the seal of no values after it.
  std::string finish();

 private:
  void begin_value();

  /// The list as far as it is written, without its first bracket.
  std::string text_;
};

}  // namespace syno
