#include "syno/emit/cpp/formats.h"

#include "syno/support/error.h"

namespace syno::cpp {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view text, std::string_view expected) {
  throw UserError("unknown " + std::string(what) + " '" + std::string(text) +
                  "'\n  expected: " + std::string(expected));
}

}  // namespace

Precision parse_precision(std::string_view text) {
  if (text == "float32") return Precision::kFloat32;
  if (text == "bfloat16") return Precision::kBfloat16;
  if (text == "int8") return Precision::kInt8;
  refuse("precision", text, "float32, bfloat16 or int8");
}

std::int64_t terms_of_word(Precision precision) {
  switch (precision) {
    case Precision::kFloat32: return 1;
    case Precision::kBfloat16: return 2;
    case Precision::kInt8: return 4;
  }
  return 1;
}

Element parse_element(std::string_view what, std::string_view text) {
  if (text == "float32") return Element::kFloat32;
  if (text == "bfloat16") return Element::kBfloat16;
  if (text == "uint8") return Element::kCode;
  refuse(what, text, "float32, bfloat16 or uint8");
}

Element panel_element(Precision precision) {
  switch (precision) {
    case Precision::kFloat32: return Element::kFloat32;
    case Precision::kBfloat16: return Element::kBfloat16;
    case Precision::kInt8: return Element::kCode;
  }
  return Element::kFloat32;
}

std::int64_t bytes_of(Element element) {
  return element == Element::kFloat32 ? 4 : element == Element::kBfloat16 ? 2 : 1;
}

std::string_view source_type(Element element) {
  return element == Element::kFloat32    ? "const float*"
         : element == Element::kBfloat16 ? "const Bfloat16*"
                                         : "Codes";
}

std::string_view target_type(Element element) {
  return element == Element::kFloat32    ? "float*"
         : element == Element::kBfloat16 ? "Bfloat16*"
                                         : "CodesOut";
}

std::string_view words_type(Precision precision) {
  return precision == Precision::kFloat32    ? "Floats"
         : precision == Precision::kBfloat16 ? "Pairs"
                                             : "Quads";
}

}  // namespace syno::cpp
