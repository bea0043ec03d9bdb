// Number formats of emitted C++.
//
// A contraction in bfloat16 multiplies pairs of terms, and one in int8 groups of four, with one instruction each: data and
// packed weights have so many neighbouring terms side by side in a word of 32 bits, and everything else stays as it is
// with float32, where a word is one term. Sums are float32, and int32.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syno::cpp {

/// What the contractions of a kernel multiply.
enum class Precision : std::uint8_t { kFloat32, kBfloat16, kInt8 };

/// UserError for another text than "float32", "bfloat16" and "int8".
Precision parse_precision(std::string_view text);

/// Terms that stand side by side in a word.
std::int64_t terms_of_word(Precision precision);

/// How the elements of a tensor stand in memory.
enum class Element : std::uint8_t {
  kFloat32,
  kBfloat16,
  kCode,  ///< 8 bits; the number is code - zero, zero being a value of the call
};

/// UserError for another text than "float32", "bfloat16" and "uint8". what: the name of the option.
Element parse_element(std::string_view what, std::string_view text);

/// What a panel of a contraction has.
Element panel_element(Precision precision);

std::int64_t bytes_of(Element element);
/// What stands for "const float*" and "float*" in emitted code.
std::string_view source_type(Element element);
std::string_view target_type(Element element);
/// The struct of the runtime that multiplies words.
std::string_view words_type(Precision precision);

}  // namespace syno::cpp
