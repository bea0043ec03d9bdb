#include "syno/emit/cpp/interface.h"

#include "syno/emit/cpp/epilogue.h"
#include "syno/support/error.h"
#include "syno/support/threads.h"

namespace syno {
namespace cpp {

Formats parse_formats(const CppOptions& options) {
  const Formats formats{parse_precision(options.precision),
                        parse_element("input format", options.input_format),
                        parse_element("output format", options.output_format),
                        parse_element("value format", options.value_format)};
  const Element own = panel_element(formats.precision);
  const auto fits = [&](Element element) { return element == own || element == Element::kFloat32; };
  const bool codes = formats.precision == Precision::kInt8 && formats.input != own;
  if (!fits(formats.input) || !fits(formats.output) || codes) {
    throw UserError(
        "input format " + options.input_format + " and output format " + options.output_format +
        " do not fit the precision " + options.precision +
        "\n  expected: float32, with bfloat16 also bfloat16, and in int8 codes of uint8 "
        "as input");
  }
  const bool values = formats.values == Element::kFloat32 ||
                      (formats.values == Element::kCode && formats.precision == Precision::kInt8);
  if (!values) {
    throw UserError("value format " + options.value_format + " does not fit the precision " +
                    options.precision + "\n  expected: float32, and in int8 also uint8");
  }
  return formats;
}

std::string c_type(Element element) {
  return element == Element::kFloat32 ? "float" : "void";
}

std::string source_pointer(const std::string& name, Element element, const std::string& codes) {
  if (element == Element::kFloat32) return name;
  if (element == Element::kBfloat16) return "static_cast<const Bfloat16*>(" + name + ")";
  return "Codes{static_cast<const std::uint8_t*>(" + name + "), " + codes + "}";
}
std::string target_pointer(const std::string& name, Element element, const std::string& codes) {
  if (element == Element::kFloat32) return name;
  if (element == Element::kBfloat16) return "static_cast<Bfloat16*>(" + name + ")";
  return "CodesOut{static_cast<std::uint8_t*>(" + name + "), " + codes + "}";
}

}  // namespace cpp

std::string cpp_header(const CppOptions& options) {
  const std::string& name = options.name;
  const cpp::Formats formats = cpp::parse_formats(options);
  const bool codes = formats.precision == cpp::Precision::kInt8;
  const bool ends = !cpp::parse_epilogue(options.epilogue).empty() || codes;
  const std::string x = "const " + cpp::c_type(formats.input) + "* x";
  const std::string y = cpp::c_type(formats.output) + "* y";
  const std::string residual = "const " + cpp::c_type(formats.output) + "* residual";
  return "#pragma once\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
         "/* Floats that pack writes. */\nlong " +
         name +
         "_packed_size(void);\n"
         "/* Once a model: the weights in the order that the kernels read them in. */\nvoid " +
         name +
         "_pack(const float* const* weights, float* packed);\n"
         "/* Floats of scratch memory for so many threads, or parts of a phase. */\nlong " +
         name + "_workspace_size(int threads);\n" +
         (ends ? "/* channel: C floats of bias; with scale 2*C, bias before scale. "
                 "residual: like y, and may be y. */\n"
               : "") +
         (codes
              ? "/* Behind them: the zero of x, the zero and the scale of residual, the zero of y "
                "and 1 / its scale;\n"
                "   then of each tensor between contractions that is stored as codes its zero, its "
                "scale "
                "and 1 / its scale. */\n"
              : "") +
         "/* threads: at most so many, from 1 to " + std::to_string(kMaxThreads) +
         "; a number outside counts as the nearest. y is the same for any number. */\n" + "void " +
         name + "_run(" + x + ", const float* packed, " +
         (ends ? "const float* channel,\n    " + residual + ", " + y +
                     ", float* workspace, long batch, int threads);\n"
               : y + ", float* workspace, long batch,\n    int threads);\n") +
         "/* One image by phases, of which all parts end before the next phase begins. The "
         "workspace\n"
         "   has the size for `parts` threads; channel and residual are null without an epilogue. "
         "*/\n"
         "int " +
         name + "_phase_count(void);\nvoid " + name + "_phase(int phase, " + x +
         ", const float* packed, const float* channel,\n"
         "    " +
         residual + ", " + y +
         ", float* workspace, long part, long parts);\n"
         "#ifdef __cplusplus\n}\n#endif\n";
}

}  // namespace syno
