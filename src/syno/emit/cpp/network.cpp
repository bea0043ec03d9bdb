#include "syno/emit/cpp/network.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <utility>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/cpp/formats.h"
#include "syno/emit/cpp/interface.h"
#include "syno/emit/cpp/network_text.h"
#include "syno/support/hash.h"
#include "syno/support/text.h"
#include "syno/support/threads.h"

namespace syno {
namespace {

constexpr std::size_t kMostParts = 8;
// How many images a team computes together at most, and the floats of their arenas.
constexpr std::int64_t kMostImages = 8;
constexpr std::int64_t kMostTogether = 8 << 20;

using Texts = std::map<std::string, std::string, std::less<>>;

// The template with the values of its @NAMES@.
std::string filled(std::string_view text, const Texts& values) {
  std::string result;
  while (true) {
    const std::size_t begin = text.find('@');
    result += text.substr(0, begin);
    if (begin == std::string_view::npos) return result;
    const std::size_t end = text.find('@', begin + 1);
    const auto value = end == std::string_view::npos
                           ? values.end()
                           : values.find(text.substr(begin + 1, end - begin - 1));
    if (value == values.end()) {
      result += '@';
      text.remove_prefix(begin + 1);
    } else {
      result += value->second;
      text.remove_prefix(end + 1);
    }
  }
}

std::string indented(std::string_view text, std::string_view spaces) {
  std::vector<std::string> lines;
  for (const std::string_view line : split_lines(text))
    lines.push_back(std::string(spaces) + std::string(line));
  return join(lines, "\n");
}

std::string shape_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return join(sizes, ", ");
}

std::int64_t floats_of(const std::vector<std::int64_t>& shape) {
  std::int64_t floats = 1;
  for (const std::int64_t size : shape) floats *= size;
  return floats;
}

// A text as C++ writes it.
std::string literal(std::string_view text) {
  std::string written = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    char octal[8];
    std::snprintf(octal, sizeof octal, "\\%03o", code);
    written += code < ' ' || code > '~' || letter == '"' || letter == '\\' || letter == '?'
                   ? octal
                   : std::string{letter};
  }
  return written + '"';
}

std::string hexadecimal(std::uint64_t number) {
  char written[24];
  std::snprintf(written, sizeof written, "0x%016llxULL", static_cast<unsigned long long>(number));
  return written;
}

std::string numbered(const std::string& name, std::size_t number, std::size_t count) {
  return count == 1 ? name : name + std::to_string(number);
}

// A tensor that a network takes or gives.
struct Argument {
  std::string name;
  const std::vector<std::int64_t>& shape;
  std::int64_t tokens;
  bool output, shared;

  std::string type(bool c = false) const {
    if (tokens == 0) return output ? "float*" : "const float*";
    return c ? "const int64_t*" : "const std::int64_t*";
  }
  std::string text() const {
    const std::string sizes = shape_of(shape);
    const std::string dims = shared ? sizes : sizes.empty() ? "N" : "N, " + sizes;
    return "[" + dims + "]" + (tokens > 0 ? " int64" : " float32");
  }
  // Of the image n.
  std::string of_image() const {
    return shared ? name : name + " + n * " + std::to_string(floats_of(shape));
  }
};

class NetworkPrinter {
 public:
  NetworkPrinter(const NetworkProgram& program, bool hosted) : program_(program), hosted_(hosted) {
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      const NetworkInput& input = program.inputs[i];
      arguments_.push_back({numbered("x", i, program.inputs.size()), input.shape, input.tokens,
                            false, input.shared});
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i)
      arguments_.push_back(
          {numbered("y", i, program.outputs.size()), program.outputs[i], 0, true, false});
    values_ = {
        {"LAYERS", std::to_string(program.layers.size())},
        {"ARENA", std::to_string(program.arena)},
        {"CONSTANTS_TYPE", hosted ? "const float* const*" : "const float*"},
        {"MEMBERS", of_arguments("\n",
                                 [](const Argument& a) {
                                   return "  [[maybe_unused]] " + a.type() + " " + a.name + ";";
                                 })},
        {"AT", of_arguments(", ", [](const Argument& a) { return a.of_image(); })},
        {"CHECK", check()},
        {"STEPS", steps()},
        {"STEP_COUNT", std::to_string(program.steps.size())},
        {"STEP_NAMES",
         of_steps([](std::size_t i) { return "&Image::step_" + std::to_string(i); }, "nullptr")},
        {"STEP_LAYERS",
         of_steps([&](std::size_t i) { return program.steps[i].call ? "true" : "false"; },
                  "false")},
    };
    group();
  }

  NetworkSource library() {
    name();
    const std::size_t parts = std::min(kMostParts, program_.kernels.size());
    std::vector<std::string> pieces{cpp_runtime()};
    for (std::size_t k = 0; k < program_.kernels.size(); ++k) pieces.push_back(declared(k));
    for (std::size_t part = 1; part <= parts; ++part) {
      std::vector<std::string> mine;
      for (std::size_t k = part - 1; k < program_.kernels.size(); k += parts)
        mine.push_back(program_.kernels[k].text);
      pieces.push_back(guarded(part, join(mine, "\n")));
    }
    pieces.push_back(guarded(0, body() + filled(cpp::network_weights(), values_) +
                                    filled(cpp::network_interface(), values_)));
    NetworkSource made;
    made.code = filled(cpp::network_head(), values_) + join(pieces, "\n");
    values_["PARAMETERS"] = parameters(true);
    made.header = filled(cpp::network_header(), values_);
    made.parts = parts;
    return made;
  }

  std::string program() {
    std::size_t inputs = 0, outputs = 0;
    values_["FROM_HOST"] = of_arguments(", ", [&](const Argument& a) {
      if (a.output) return "outputs[" + std::to_string(outputs++) + "]";
      return "static_cast<" + a.type() + ">(inputs[" + std::to_string(inputs++) + "])";
    });
    return body() + filled(cpp::network_program(), values_);
  }

 private:
  std::string body() const {
    const std::string_view held = hosted_ ? cpp::network_hosted() : cpp::network_held();
    return std::string(cpp::network_plain()) + std::string(cpp::network_products()) +
           filled(held, values_) + filled(cpp::network_image(), values_) +
           filled(cpp::network_driver(), values_);
  }

  // What only a library names.
  void name() {
    const auto names = [&](bool output) {
      std::vector<std::string> found;
      for (const Argument& a : arguments_)
        if (a.output == output) found.push_back(a.name);
      return join(found, ", ");
    };
    std::vector<std::string> kernels, kernel_of;
    for (std::size_t k = 0; k < program_.kernels.size(); ++k)
      kernels.push_back("{" + kernel(k) + "_workspace_size, " + kernel(k) + "_phase_count, " +
                        phase(k) + "}");
    kernels.emplace_back("{}");
    for (const NetworkLayer& layer : program_.layers)
      kernel_of.push_back(std::to_string(layer.kernel));
    kernel_of.emplace_back("0");
    values_.merge(Texts{
        {"NAME", program_.name},
        {"FILE", program_.file},
        {"LIBRARY", program_.library},
        {"FINGERPRINT", hexadecimal(program_.fingerprint)},
        {"WORDS", std::to_string(program_.words)},
        {"CONSTANTS", std::to_string(program_.constants)},
        {"KERNELS", join(kernels, ", ")},
        {"KERNEL_OF", join(kernel_of, ", ")},
        {"SIGNATURE", signature()},
        {"PARAMETERS", parameters(false)},
        {"ARGUMENTS", of_arguments(", ", [](const Argument& a) { return a.name; })},
        {"ANY_NULL", of_arguments(" || ", [](const Argument& a) { return "!" + a.name; })},
        {"GIVEN", names(false)},
        {"RESULTS", names(true)},
        {"INPUTS", std::to_string(program_.inputs.size())},
        {"OUTPUTS", std::to_string(program_.outputs.size())},
        {"DESCRIPTIONS", descriptions()},
        {"STEP_ABOUT",
         of_steps([&](std::size_t i) { return literal(program_.steps[i].about); }, "nullptr")},
        {"MOST_THREADS", std::to_string(kMaxThreads)},
        {"PACKED_SIZES", packed_sizes()},
        {"LARGEST", std::to_string(largest())},
        {"PACKING", packing()},
        {"BUILD", build()},
    });
  }

  template <class F>
  std::string of_arguments(const char* between, const F& text) const {
    std::vector<std::string> found;
    for (const Argument& argument : arguments_) found.push_back(text(argument));
    return join(found, between);
  }

  std::string parameters(bool c) const {
    return of_arguments(", ", [&](const Argument& a) { return a.type(c) + " " + a.name; });
  }

  std::string signature() const {
    std::vector<std::string> in, out;
    for (const Argument& a : arguments_) (a.output ? out : in).push_back(a.text());
    return join(in, ", ") + " -> " + join(out, ", ");
  }

  // The tables kInputs and kOutputs.
  std::string descriptions() const {
    std::string shapes, inputs, outputs;
    for (const Argument& a : arguments_) {
      const std::string array = "kShapeOf_" + a.name;
      const std::string sizes = a.shape.empty() ? "0" : shape_of(a.shape);
      shapes += "constexpr long " + array + "[] = {" + sizes + "};\n";
      (a.output ? outputs : inputs) += std::string("  {\"") + (a.tokens > 0 ? "int64" : "float32") +
                                       "\", " + std::to_string(a.shape.size()) + ", " + array +
                                       "},\n";
    }
    return shapes + "constexpr Description kInputs[] = {\n" + inputs +
           "};\nconstexpr Description kOutputs[] = {\n" + outputs + "};";
  }

  std::string kernel(std::size_t number) const {
    return program_.name + "_k" + std::to_string(number);
  }
  const NetworkLayer& layer(const NetworkCall& call) const {
    return program_.layers.at(static_cast<std::size_t>(call.layer));
  }

  static std::string guarded(std::size_t part, const std::string& text) {
    return "#if !defined(SYNO_PART) || SYNO_PART == " + std::to_string(part) + "\n" + text +
           "\n#endif\n";
  }

  // The functions of a kernel that the network calls.
  std::string declared(std::size_t number) const {
    const std::string name = kernel(number);
    const auto [x, y] = types(number);
    return "extern \"C\" {\nlong " + name + "_packed_size(void);\nvoid " + name +
           "_pack(const float* const*, float*);\nlong " + name + "_workspace_size(int);\nint " +
           name + "_phase_count(void);\nvoid " + name + "_phase(int, const " + x +
           "*, const float*, const float*, const " + y + "*, " + y + "*, float*, long, long);\n}";
  }

  // What x and y of a kernel point to.
  std::pair<std::string, std::string> types(std::size_t number) const {
    const auto type = [](std::string_view format) {
      return cpp::c_type(cpp::parse_element("format", format));
    };
    const NetworkKernel& kernel = program_.kernels[number];
    return {type(kernel.input_format), type(kernel.output_format)};
  }

  // A function that computes a phase of a kernel, whatever its tensors are.
  std::string phase(std::size_t number) const {
    const auto [x, y] = types(number);
    return "\n  [](int phase, const void* x, const float* packed, const float* channel, const "
           "void* "
           "residual, void* y,\n     float* workspace, long part, long parts) {\n    " +
           kernel(number) + "_phase(phase, static_cast<const " + x +
           "*>(x), packed, channel, static_cast<const " + y + "*>(residual),\n      static_cast<" +
           y + "*>(y), workspace, part, parts);\n  }";
  }

  // Refuses token ids that are too large.
  std::string check() const {
    std::string checks;
    for (const Argument& a : arguments_) {
      if (a.tokens == 0) continue;
      const std::string tokens = std::to_string(a.tokens), at = "all." + a.name + "[i]";
      const std::string batch = a.shared ? "" : "batch * ";
      checks += "  for (long i = 0; i < " + batch + std::to_string(floats_of(a.shape)) +
                "; ++i)\n    if (" + at + " < 0 || " + at + " >= " + tokens +
                ") return failed(\"the token id \" + std::to_string(" + at +
                ") + \" is not below " + tokens + "\");\n";
    }
    return checks;
  }

  // Reads and packs the weights of every layer, one after the other in the file.
  std::string packing() const {
    std::vector<std::string> blocks;
    for (std::size_t number = 0; number < program_.layers.size(); ++number) {
      const NetworkLayer& layer = program_.layers[number];
      std::int64_t sum = 0;
      std::vector<std::string> places;
      std::string reading;
      for (const std::int64_t size : layer.weights) {
        places.push_back("values.get() + " + std::to_string(sum));
        sum += size;
        reading += "    if (!from.read_" + layer.stored + "(" + places.back() + ", " +
                   std::to_string(size) + ")) return cut(given);\n";
      }
      const std::string place = std::to_string(number);
      blocks.push_back("  {\n" + reading + "    const float* const weights[] = {" +
                       (places.empty() ? "nullptr" : join(places, ", ")) + "};\n    " +
                       kernel(static_cast<std::size_t>(layer.kernel)) +
                       "_pack(weights, net.packed[" + place + "]);\n  }");
    }
    return join(blocks, "\n");
  }

  // Of each layer when it is packed, and one behind them: there is no array of none.
  std::string packed_sizes() const {
    std::vector<std::string> sizes;
    for (const NetworkLayer& layer : program_.layers)
      sizes.push_back(kernel(static_cast<std::size_t>(layer.kernel)) + "_packed_size()");
    sizes.emplace_back("0");
    return join(sizes, ", ");
  }

  // Of the code that arranges weights.
  std::string build() const {
    Hasher hasher("packed weights");
    hasher.add(cpp_runtime());
    for (const NetworkKernel& kernel : program_.kernels) hasher.add(kernel.text);
    hasher.add(packing());
    return hexadecimal(hasher.finish().low);
  }

  std::int64_t largest() const {
    std::int64_t most = 1;
    for (const NetworkLayer& layer : program_.layers)
      most = std::max(most,
                      std::accumulate(layer.weights.begin(), layer.weights.end(), std::int64_t{0}));
    return most;
  }

  std::string steps() const {
    std::vector<std::string> blocks;
    for (std::size_t number = 0; number < program_.steps.size(); ++number) {
      const NetworkStep& step = program_.steps[number];
      const std::string code = step.call ? call(*step.call) : step.code;
      blocks.push_back("\n  // " + step.about + "\n  void step_" + std::to_string(number) +
                       "() const {\n" + indented(code, "    ") + "\n  }");
    }
    return join(blocks, "\n");
  }

  // The kernel of a layer, for each sample.
  static std::string call(const NetworkCall& call) {
    const auto bytes = [&](const NetworkOperand& operand) {
      return std::to_string(operand.bytes / call.samples);
    };
    return "layer(" + std::to_string(call.layer) + ", " + std::to_string(call.samples) + ", " +
           call.x.at + ", " + bytes(call.x) + ", " + call.channel.at + ", " + call.residual.at +
           ", " + call.y.at + ", " + bytes(call.y) + ");";
  }

  // A list with an element for each step, and one behind them: there is no array of none.
  template <class F>
  std::string of_steps(const F& text, const char* last) const {
    std::vector<std::string> found;
    for (std::size_t number = 0; number < program_.steps.size(); ++number)
      found.emplace_back(text(number));
    found.emplace_back(last);
    return join(found, ", ");
  }

  // Whether a step is to be computed for all images before the next one: its weights would come from memory again for
  // each image, which costs more than maps that leave the cache.
  bool together(const NetworkStep& step) const {
    if (!step.call || program_.steps.size() < 2) return false;
    const NetworkLayer& found = layer(*step.call);
    std::int64_t weights = 0;
    for (const std::int64_t size : found.weights) weights += size;
    return weights * weight_bytes(found) > step.call->x.bytes + step.call->y.bytes;
  }

  // Of a packed weight.
  std::int64_t weight_bytes(const NetworkLayer& layer) const {
    const auto kernel = static_cast<std::size_t>(layer.kernel);
    if (kernel >= program_.kernels.size()) return cpp::bytes_of(cpp::Element::kFloat32);
    return cpp::bytes_of(cpp::parse_element("format", program_.kernels[kernel].input_format));
  }

  void group() {
    std::vector<std::string> groups;
    std::size_t first = 0;
    bool any = false;
    for (std::size_t last = 1; last <= program_.steps.size(); ++last) {
      const bool now = together(program_.steps[first]);
      if (last < program_.steps.size() && together(program_.steps[last]) == now) continue;
      any = any || now;
      groups.push_back("{" + std::to_string(first) + ", " + std::to_string(last) +
                       (now ? ", true}" : ", false}"));
      first = last;
    }
    if (groups.empty()) groups.emplace_back("{0, 0, false}");
    const std::int64_t fit = kMostTogether / std::max<std::int64_t>(program_.arena, 1);
    const std::int64_t most = any ? std::clamp<std::int64_t>(fit, 1, kMostImages) : 1;
    values_["GROUPS"] = join(groups, ", ");
    values_["TOGETHER"] = std::to_string(most);
  }

  const NetworkProgram& program_;
  const bool hosted_;
  std::vector<Argument> arguments_;
  Texts values_;
};

}  // namespace

NetworkSource emit_network(const NetworkProgram& program) {
  return NetworkPrinter(program, false).library();
}

std::string emit_program(const NetworkProgram& program) {
  return NetworkPrinter(program, true).program();
}

}  // namespace syno
