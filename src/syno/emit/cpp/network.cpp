#include "syno/emit/cpp/network.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/cpp/network_text.h"
#include "syno/support/text.h"
#include "syno/support/threads.h"

namespace syno {
namespace {

constexpr std::size_t kMostParts = 8;

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

class NetworkPrinter {
 public:
  explicit NetworkPrinter(const NetworkProgram& program) : program_(program) {
    char fingerprint[24];
    std::snprintf(fingerprint, sizeof fingerprint, "0x%016llxULL",
                  static_cast<unsigned long long>(program.fingerprint));
    values_ = {
        {"NAME", program.name},
        {"FILE", program.file},
        {"LIBRARY", program.library},
        {"FINGERPRINT", fingerprint},
        {"FLOATS", std::to_string(program.floats)},
        {"CONSTANTS", std::to_string(program.constants)},
        {"ARENA", std::to_string(program.arena)},
        {"LAYERS", std::to_string(program.layers.size())},
        {"X_FLOATS", std::to_string(floats_of(program.input))},
        {"Y_FLOATS", std::to_string(floats_of(program.output))},
        {"X_SHAPE", shape_of(program.input)},
        {"Y_SHAPE", shape_of(program.output)},
        {"X_RANK", std::to_string(program.input.size())},
        {"Y_RANK", std::to_string(program.output.size())},
        {"X_TYPE", program.tokens > 0 ? "std::int64_t" : "float"},
        {"X_DTYPE", program.tokens > 0 ? "int64" : "float32"},
        {"MOST_THREADS", std::to_string(kMaxThreads)},
        {"CHECK", check()},
        {"PACKING", packing()},
        {"WORKSPACES", workspaces()},
        {"STEPS", steps()},
    };
  }

  NetworkSource source() {
    const std::size_t parts = std::min(kMostParts, program_.kernels.size());
    std::vector<std::string> pieces{cpp_runtime()};
    for (std::size_t k = 0; k < program_.kernels.size(); ++k) pieces.push_back(declared(k));
    for (std::size_t part = 1; part <= parts; ++part) {
      std::vector<std::string> mine;
      for (std::size_t k = part - 1; k < program_.kernels.size(); k += parts)
        mine.push_back(program_.kernels[k]);
      pieces.push_back(guarded(part, join(mine, "\n")));
    }
    pieces.push_back(guarded(
        0, std::string(cpp::network_plain()) + std::string(cpp::network_products()) +
               filled(cpp::network_image(), values_) + filled(cpp::network_interface(), values_)));
    NetworkSource made;
    made.code = filled(cpp::network_head(), values_) + join(pieces, "\n");
    if (program_.tokens > 0) values_["X_TYPE"] = "int64_t";  // of C
    made.header = filled(cpp::network_header(), values_);
    made.parts = parts;
    return made;
  }

 private:
  std::string kernel(std::size_t number) const {
    return program_.name + "_k" + std::to_string(number);
  }
  std::string kernel_of(int layer) const {
    return kernel(
        static_cast<std::size_t>(program_.layers.at(static_cast<std::size_t>(layer)).kernel));
  }

  static std::string guarded(std::size_t part, const std::string& text) {
    return "#if !defined(SYNO_PART) || SYNO_PART == " + std::to_string(part) + "\n" + text +
           "\n#endif\n";
  }

  // The functions of a kernel that the network calls.
  std::string declared(std::size_t number) const {
    const std::string name = kernel(number);
    return "extern \"C\" {\nlong " + name + "_packed_size(void);\nvoid " + name +
           "_pack(const float* const*, float*);\nlong " + name + "_workspace_size(int);\nint " +
           name + "_phase_count(void);\nvoid " + name +
           "_phase(int, const float*, const float*, const float*, const float*, float*, float*, "
           "long, long);\n}";
  }

  // Refuses token ids that are too large.
  std::string check() const {
    if (program_.tokens == 0) return "";
    const std::string tokens = std::to_string(program_.tokens);
    return "  for (long i = 0; i < batch * " + std::to_string(floats_of(program_.input)) +
           "; ++i) {\n    if (x[i] >= 0 && x[i] < " + tokens +
           ") continue;\n    failed(\"the token id \" + std::to_string(x[i]) + \" is not below " +
           tokens + "\");\n    return -1;\n  }\n";
  }

  // Packs the weights of every layer, one after the other in the file.
  std::string packing() const {
    std::vector<std::string> blocks;
    for (std::size_t number = 0; number < program_.layers.size(); ++number) {
      const NetworkLayer& layer = program_.layers[number];
      std::int64_t sum = 0;
      std::vector<std::string> places;
      for (const std::int64_t size : layer.weights) {
        places.push_back("from + " + std::to_string(sum));
        sum += size;
      }
      const std::string name = kernel(static_cast<std::size_t>(layer.kernel));
      blocks.push_back(
          "  {\n    const float* const weights[] = {" +
          (places.empty() ? "nullptr" : join(places, ", ")) + "};\n    if (!pack(net, " +
          std::to_string(number) + ", " + name + "_packed_size(), " + name +
          "_pack, weights)) return false;\n    from += " + std::to_string(sum) + ";\n  }");
    }
    return join(blocks, "\n");
  }

  std::string workspaces() const {
    std::vector<std::string> lines;
    for (std::size_t k = 0; k < program_.kernels.size(); ++k)
      lines.push_back("  size = most(size, " + kernel(k) + "_workspace_size((int)threads));");
    return join(lines, "\n");
  }

  std::string steps() const {
    std::vector<std::string> blocks;
    for (std::size_t number = 0; number < program_.steps.size(); ++number) {
      const NetworkStep& step = program_.steps[number];
      const std::string watch = step.call ? "    const Stopwatch watch{layer_seconds};\n" : "";
      const std::string code = step.call ? call(*step.call) : step.code;
      blocks.push_back("  {  // " + std::to_string(number) + ": " + step.about + "\n" + watch +
                       indented(code, "    ") + "\n    wait_for_team(team);\n  }");
    }
    return join(blocks, "\n");
  }

  // The phases of a kernel, for each sample.
  std::string call(const NetworkCall& call) const {
    const std::string name = kernel_of(call.layer);
    const auto place = [&](const NetworkOperand& operand) {
      if (call.samples == 1 || operand.at == "nullptr") return operand.at;
      return operand.at + " + sample * " + std::to_string(operand.floats / call.samples);
    };
    std::string phases = "const int phases = " + name +
                         "_phase_count();\nfor (int phase = 0; phase < phases; ++phase) {\n"
                         "  if (phase > 0) wait_for_team(team);\n  " +
                         name + "_phase(phase, " + place(call.x) + ", net.packed[" +
                         std::to_string(call.layer) + "], " + call.channel.at + ", " +
                         place(call.residual) + ", " + place(call.y) +
                         ",\n    workspace, team.thread, team.threads);\n}";
    if (call.samples == 1) return phases;
    return "for (long sample = 0; sample < " + std::to_string(call.samples) +
           "; ++sample) {\n  if (sample > 0) wait_for_team(team);\n" + indented(phases, "  ") +
           "\n}";
  }

  const NetworkProgram& program_;
  Texts values_;
};

}  // namespace

NetworkSource emit_network(const NetworkProgram& program) {
  return NetworkPrinter(program).source();
}

}  // namespace syno
