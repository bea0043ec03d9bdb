#include "syno/emit/cpp/cpp.h"

#include <algorithm>
#include <optional>

#include "syno/emit/cpp/epilogue.h"
#include "syno/emit/cpp/interface.h"
#include "syno/emit/cpp/print_products.h"
#include "syno/emit/cpp/print_rows.h"
#include "syno/emit/cpp/runtime.h"
#include "syno/emit/cpp/schedule.h"
#include "syno/emit/printer.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace cpp {
namespace {

// Vectors may read so many floats behind a buffer of ours.
constexpr std::int64_t kSlack = 64;
std::int64_t rounded(std::int64_t floats) {
  return (floats + 15) / 16 * 16;
}

std::int64_t floats_of(std::int64_t elements, Element element) {
  return (elements * bytes_of(element) + 3) / 4;
}

class Emitter {
 public:
  Emitter(const Plan& plan, const CppOptions& options)
      : plan_(plan),
        options_(options),
        epilogue_(parse_epilogue(options.epilogue)),
        schedule_(schedule(plan, options)) {
    const std::size_t rank = program_.buffer(program_.output).shape.size();
    if (epilogue_.uses_channels()) check_channel(options.channel, rank, program_.batched);
  }

  std::string run() {
    place();
    head();
    // Nothing of it may be seen outside: a process may load many operators, whose parts have equal names, and the
    // loader makes one of static members that it can see.
    out_.line("namespace {");
    out_.line("namespace " + options_.name + "_detail {").line();
    epilogue_type();
    for (std::size_t p = 0; p < phases_.size(); ++p) {
      for (const std::string_view line : split_lines(phases_[p].text))
        out_.line("// " + std::string(line));
      if (phases_[p].rows) {
        const bool is_last = !phases_[p].contraction && ends(p);
        const int channel = epilogue_.uses_channels() ? static_cast<int>(channel_place()) : -1;
        print_rows(out_, program_, *phases_[p].rows, rows_name(p),
                   {operand_elements(*phases_[p].rows), is_last, channel, is_of_data(phases_[p])});
        out_.line();
      }
      if (phases_[p].contraction) {
        print_contraction(out_, program_, *phases_[p].contraction, contract_name(p),
                          phases_[p].tuning, channel_of(p));
        out_.line();
      }
      if (phases_[p].depthwise) {
        print_depthwise(out_, program_, *phases_[p].depthwise, depthwise_name(p), channel_of(p));
        out_.line();
      }
    }
    packed_offsets();
    phase_function();
    out_.line().line("}  // namespace " + options_.name + "_detail");
    out_.line("}  // namespace").line();
    interface();
    return out_.text();
  }

  const LoopProgram& program() const { return schedule_.program; }

  std::vector<std::string> codes() const {
    std::vector<std::string> names;
    for (const int buffer : codes_) names.push_back("t" + number(program_.buffer(buffer).number));
    return names;
  }

 private:
  // --- where things are -------------------------------------------------------------------------------------------

  bool in_packed(int buffer) const { return program_.buffer(buffer).from_weights; }

  void place() {
    offsets_.assign(program_.buffers.size(), -1);
    raw_.assign(program_.buffers.size(), false);
    for (const Phase& phase : phases_) {
      if (phase.rows) {
        for (const Access& operand : phase.rows->nest.operands) {
          if (in_packed(operand.buffer)) raw_[at(operand.buffer)] = true;
        }
      }
      if (in_packed(phase.store)) raw_[at(phase.store)] = true;
      const bool value = program_.buffer(phase.store).kind == BufferKind::kValue;
      if (value && element_of(phase.store) == Element::kCode) codes_.push_back(phase.store);
      if (value && !in_packed(phase.store)) share(phase.store);
      if (phase.panel >= 0) {
        if (phase.contraction->private_panel) {
          own_ = std::max(own_, rounded(floats_of(phase.contraction->block_elements(),
                                                  element_of(phase.panel)) +
                                        kSlack));
        } else {
          share(phase.panel);
        }
      }
    }
  }

  Element element_of(int buffer) const { return schedule_.elements[at(buffer)]; }

  std::vector<Element> operand_elements(const RowLoops& rows) const {
    std::vector<Element> elements;
    for (const Access& operand : rows.nest.operands) elements.push_back(element_of(operand.buffer));
    return elements;
  }

  // Whether the rows fill a panel with what the contraction reads, and not with what is computed for it.
  bool is_of_data(const Phase& phase) const {
    return phase.contraction && phase.rows->nest.operands.size() == 1 &&
           phase.rows->nest.operands[0].buffer == data_of(phase);
  }

  bool in_codes() const { return formats_.precision == Precision::kInt8; }
  // Whether `run` has the arguments of an epilogue.
  bool has_ends() const { return !epilogue_.empty() || in_codes(); }

  // Whether the phase's results go through an epilogue.
  bool ends(std::size_t p) const {
    return !epilogue_.empty() && program_.buffer(phases_[p].store).kind == BufferKind::kOutput;
  }

  // The dimension of the result that the epilogue of a phase has values for, or -1.
  int channel_of(std::size_t p) const {
    return ends(p) && epilogue_.uses_channels() ? static_cast<int>(channel_place()) : -1;
  }

  void share(int buffer) {
    offsets_[at(buffer)] = shared_;
    shared_ += rounded(floats_of(image_elements(buffer), element_of(buffer)) + kSlack);
  }

  std::int64_t image_elements(int buffer) const {
    const Buffer& b = program_.buffer(buffer);
    const bool panel = b.kind == BufferKind::kValue && b.number < 0;
    if (!program_.batched || panel || b.from_weights) return b.elements();
    return b.shape[0] == 0 ? 0 : b.elements() / b.shape[0];
  }

  // --- text -------------------------------------------------------------------------------------------------------

  static std::string number(std::int64_t value) { return std::to_string(value); }
  static std::string rows_name(std::size_t phase) { return "rows_" + std::to_string(phase); }
  static std::string depthwise_name(std::size_t phase) {
    return "Depthwise" + std::to_string(phase);
  }
  static std::string contract_name(std::size_t phase) {
    return "Contraction" + std::to_string(phase);
  }

  void head() {
    out_.line("// Generated by Syno: a linear operator on x " + plan_.tensor_text(plan_.input) +
              ".");
    out_.line("// Returns " + plan_.tensor_text(plan_.output) + ". " +
              with_thousands(plan_.cost.macs) + " MACs, " + with_thousands(plan_.params) +
              " parameters.");
    for (const std::string_view line : split_lines(options_.formula))
      out_.line("//     " + std::string(line));
    for (const int weight : plan_.weights)
      out_.line("// " + plan_.tensor_name(weight) + " " + plan_.tensor_text(weight));
    out_.line();
    if (options_.with_runtime) {
      const std::string runtime = runtime_text();
      for (const std::string_view line : split_lines(runtime)) out_.line(line);
      out_.line();
    }
  }

  // The packed memory: weights as they are where rows read them, then the tiles of contractions.
  void packed_offsets() {
    std::int64_t raw = 0;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      if (!raw_[b]) continue;
      offsets_[b] = raw;
      raw += rounded(program_.buffers[b].elements());
    }
    std::string previous = number(raw);
    for (std::size_t p = 0; p < phases_.size(); ++p) {
      if (!phases_[p].contraction && !phases_[p].depthwise) continue;
      const std::string name = "kPacked" + number(static_cast<std::int64_t>(p));
      out_.line("constexpr long " + name + " = " + previous + ";");
      if (phases_[p].depthwise) {
        const std::string words = "Words4<" + depthwise_name(p) + ">::";
        previous = name + " + " + words + "kBlocks * " + words + "kBlock";
        continue;
      }
      previous = name + " + " + contract_name(p) + "::kGroups * Tiling<" + contract_name(p) +
                 ">::kPackedGroup";
    }
    out_.line("constexpr long kPackedSize = " + previous + ";").line();
  }

  std::string place_of(int buffer) const {
    const Buffer& b = program_.buffer(buffer);
    if (b.from_weights) {
      ensure(raw_[at(buffer)], "emit_cpp: a weight is not where it is read");
      return "packed + " + number(offsets_[at(buffer)]);
    }
    if (b.kind == BufferKind::kInput) return "x";
    if (b.kind == BufferKind::kOutput) return "y";
    std::string start = "shared + " + number(offsets_[at(buffer)]);
    if (element_of(buffer) != Element::kCode) return start;
    return "Codes{reinterpret_cast<const std::uint8_t*>(" + start + "), " + zero_of(buffer) + ", " +
           scale_of(buffer) + "}";
  }
  // The same for what is stored there.
  std::string target_of(int buffer) const {
    if (program_.buffer(buffer).kind != BufferKind::kValue || element_of(buffer) != Element::kCode)
      return place_of(buffer);
    return "CodesOut{reinterpret_cast<std::uint8_t*>(shared + " + number(offsets_[at(buffer)]) +
           "), " + zero_of(buffer) + ", " + factor_of(buffer) + "}";
  }

  // Of codes: what their numbers are counted from, the step from one to the next, and 1 / step. Those of x count as
  // integers: its scale is in that of the epilogue.
  std::string code_value(int buffer, std::int64_t which) const {
    const auto found = std::find(codes_.begin(), codes_.end(), buffer);
    ensure(found != codes_.end(), "emit_cpp: codes without a scale");
    return "codes[" + number(3 * (found - codes_.begin()) + which) + "]";
  }
  bool is_input(int buffer) const { return program_.buffer(buffer).kind == BufferKind::kInput; }
  std::string zero_of(int buffer) const {
    return is_input(buffer) ? "x.zero" : code_value(buffer, 0);
  }
  std::string scale_of(int buffer) const {
    return is_input(buffer) ? "1.0f" : code_value(buffer, 1);
  }
  std::string factor_of(int buffer) const {
    return is_input(buffer) ? "1.0f" : code_value(buffer, 2);
  }

  // Where the dimension of the channels comes in the order of memory.
  std::size_t channel_place() const {
    const std::vector<int>& order = options_.output_order;
    if (order.empty()) return at(options_.channel);
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), options_.channel) -
                                    order.begin());
  }

  // type Output: what happens to results before they are stored.
  void epilogue_type() {
    if (epilogue_.empty()) return;
    std::int64_t inner = 1;
    std::int64_t channels = 1;
    if (epilogue_.uses_channels()) {
      // Places in memory between neighbouring channels.
      const std::vector<std::int64_t>& shape = program_.buffer(program_.output).shape;
      channels = shape[channel_place()];
      for (std::size_t d = channel_place() + 1; d < shape.size(); ++d) inner *= shape[d];
    }
    const auto flag = [](bool value) { return std::string(value ? "true, " : "false, "); };
    const std::string activation = epilogue_.activation.empty() ? "Same" : epilogue_.activation;
    const std::string pointers = formats_.output == Element::kFloat32
                                     ? ""
                                     : ", " + std::string(source_type(formats_.output)) + ", " +
                                           std::string(target_type(formats_.output));
    out_.line("// y = " + options_.epilogue);
    out_.line("using Output = Epilogue<" + flag(epilogue_.scale) + flag(epilogue_.bias) +
              flag(epilogue_.residual) + number(inner) + ", " + number(channels) + ", " +
              activation + pointers + ">;");
    out_.line();
  }

  std::string call_rows(std::size_t p, const std::string& to, const std::string& begin,
                        const std::string& end) const {
    std::string call = rows_name(p) + "(";
    for (const Access& operand : phases_[p].rows->nest.operands)
      call += place_of(operand.buffer) + ", ";
    const bool is_last = !phases_[p].contraction && ends(p);
    return call + to + ", " + begin + ", " + end + (is_last ? ", epilogue);" : ");");
  }

  // Everything about one image, in phases: a team finishes one before the next begins.
  void phase_function() {
    std::vector<std::vector<std::string>> lines;
    for (std::size_t p = 0; p < phases_.size(); ++p) {
      const Phase& phase = phases_[p];
      if (in_packed(phase.store)) continue;
      if (phase.depthwise) {
        const Depthwise& d = *phase.depthwise;
        lines.push_back({"run_depthwise<" + depthwise_name(p) + ">(" +
                         place_of(d.nest.operands[d.data].buffer) + ", " + packed_of(p) + ", " +
                         target_of(phase.store) + ", team" + (ends(p) ? ", epilogue);" : ");")});
      } else if (!phase.contraction) {
        lines.push_back({share_rows(p, target_of(phase.store))});
      } else if (phase.panel >= 0 && phase.contraction->private_panel) {
        lines.push_back(blocks_with_panels(p));
      } else {
        if (phase.panel >= 0)
          lines.push_back({share_rows(p, panel_target(phase, panel_start(phase)))});
        lines.push_back({share_blocks(p)});
      }
    }
    out_.line("constexpr int kPhases = " + number(static_cast<std::int64_t>(lines.size())) + ";")
        .line();
    out_.line("void phase(int number, [[maybe_unused]] " +
              std::string(source_type(formats_.input)) +
              " x, [[maybe_unused]] const float* packed,");
    if (!epilogue_.empty()) out_.line("           const Output& epilogue,");
    if (!codes_.empty()) out_.line("           const float* codes,");
    out_.line("           [[maybe_unused]] " + std::string(target_type(formats_.output)) +
              " y, [[maybe_unused]] float* shared, [[maybe_unused]] float* own,")
        .line("           const Team& team) {")
        .indent();
    out_.line("switch (number) {").indent();
    for (std::size_t s = 0; s < lines.size(); ++s) {
      out_.line("case " + number(static_cast<std::int64_t>(s)) + ":").indent();
      for (const std::string& line : lines[s]) out_.line(line);
      out_.line("return;").dedent();
    }
    out_.dedent().line("}");
    out_.dedent().line("}");
  }

  // A panel that begins at `start`, for what fills it.
  std::string panel_target(const Phase& phase, const std::string& start) const {
    switch (element_of(phase.panel)) {
      case Element::kFloat32: return start;
      case Element::kBfloat16: return "reinterpret_cast<Bfloat16*>(" + start + ")";
      case Element::kCode:
        return "CodesOut{reinterpret_cast<std::uint8_t*>(" + start + "), " +
               zero_of(data_of(phase)) + ", " + factor_of(data_of(phase)) + "}";
    }
    return start;
  }
  // The same for what multiplies it.
  std::string panel_source(const Phase& phase, const std::string& start) const {
    if (element_of(phase.panel) != Element::kCode) return panel_target(phase, start);
    return "Codes{reinterpret_cast<std::uint8_t*>(" + start + "), " + zero_of(data_of(phase)) +
           ", " + scale_of(data_of(phase)) + "}";
  }
  // What a contraction multiplies, which its panel has in another order.
  static int data_of(const Phase& phase) {
    return phase.contraction->nest.operands[phase.contraction->data].buffer;
  }

  std::string panel_start(const Phase& phase) const {
    return "shared + " + number(offsets_[at(phase.panel)]);
  }

  std::string share_rows(std::size_t p, const std::string& to) const {
    const std::string count = number(phases_[p].rows->count());
    return call_rows(p, to, "team.begin(" + count + ")", "team.end(" + count + ")");
  }

  std::string packed_of(std::size_t p) const {
    return "packed + kPacked" + number(static_cast<std::int64_t>(p));
  }

  std::string share_blocks(std::size_t p) const {
    const Phase& phase = phases_[p];
    const Contraction& c = *phase.contraction;
    const std::string data = phase.panel >= 0 ? panel_source(phase, panel_start(phase))
                                              : place_of(c.nest.operands[c.data].buffer);
    return "run_blocks<" + contract_name(p) + ">(" + data + ", " + packed_of(p) + ", " +
           target_of(phase.store) + ", team" + (ends(p) ? ", epilogue);" : ");");
  }

  // Each thread fills panels of its own.
  std::vector<std::string> blocks_with_panels(std::size_t p) const {
    const Phase& phase = phases_[p];
    const Contraction& c = *phase.contraction;
    const std::string name = contract_name(p);
    const std::string units = number(c.blocks * c.slice_count());
    const std::string slices = number(c.slice_count());
    const std::string rows = number(phase.rows->count() / (c.blocks * c.slice_count()));
    const Index stored = flat_address(program_, c.nest, c.nest.store);
    const std::int64_t block =
        c.columns.empty() ? 0 : stored.coefficient(c.columns[0]) * c.block_rows;
    std::string more = ends(p) ? ", epilogue" : c.has_rest() ? ", Plain{}" : "";
    if (c.has_rest()) {
      const std::int64_t all = c.nest.axes[static_cast<std::size_t>(c.columns[0])].extent;
      more += ", " + number(all) + " - block * " + number(c.block_rows);
    }
    return {
        "for (long unit = team.begin(" + units + "); unit < team.end(" + units + "); ++unit) {",
        "    const long block = unit / " + slices + ", slice = unit % " + slices + ";",
        "    " + call_rows(p,
                           panel_target(phase, "own") + " - unit * " + number(c.block_elements()),
                           "unit * " + rows, "(unit + 1) * " + rows),
        "    Block<" + name + ">::run(" + panel_source(phase, "own") + ", " + packed_of(p) + " + " +
            name + "::group(slice) * Tiling<" + name + ">::kPackedGroup, " +
            target_of(phase.store) + " + " + name + "::result(slice) + block * " + number(block) +
            ", 0, Block<" + name + ">::kTiles" + more + ");",
        "}",
    };
  }

  void interface() {
    const std::string& name = options_.name;
    const std::string inside = name + "_detail::";
    out_.line("extern \"C\" {");
    out_.line("long " + name + "_packed_size(void) { return " + inside + "kPackedSize; }");
    out_.line("long " + name + "_workspace_size(int threads) { return team_of(threads) * " +
              number(shared_ + own_) + "L; }");
    out_.line("void " + name + "_pack(const float* const* weights, float* packed) {").indent();
    out_.line("(void)weights;");
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (!raw_[b] || buffer.kind != BufferKind::kWeight) continue;
      out_.line("std::memcpy(packed + " + number(offsets_[b]) + ", weights[" +
                number(buffer.number) + "], sizeof(float) * " + number(buffer.elements()) + ");");
    }
    for (std::size_t p = 0; p < phases_.size(); ++p) {
      const Phase& phase = phases_[p];
      if (in_packed(phase.store)) {
        out_.line(inside + call_rows(p, place_of(phase.store), "0", number(phase.rows->count())));
      }
      if (phase.depthwise) {
        const int weight = phase.depthwise->nest.operands[phase.depthwise->weight].buffer;
        out_.line("pack_depthwise<" + inside + depthwise_name(p) + ">(weights[" +
                  number(program_.buffer(weight).number) + "], packed + " + inside + "kPacked" +
                  number(static_cast<std::int64_t>(p)) + ");");
      }
      if (!phase.contraction) continue;
      const Contraction& c = *phase.contraction;
      const int weight = c.nest.operands[c.weight].buffer;
      const std::string from = program_.buffer(weight).kind == BufferKind::kWeight
                                   ? "weights[" + number(program_.buffer(weight).number) + "]"
                                   : place_of(weight);
      out_.line("pack<" + inside + contract_name(p) + ">(" + from + ", packed + " + inside +
                "kPacked" + number(static_cast<std::int64_t>(p)) + ");");
    }
    out_.dedent().line("}");
    interface_run();
    interface_phase();
    out_.line("}");
  }

  // The arguments of a phase, up to y.
  std::string phase_arguments(const std::string& image) const {
    const std::int64_t in = image_elements(program_.input);
    const std::int64_t result = image_elements(program_.output);
    const auto from = [&](const std::string& start, std::int64_t elements) {
      return image.empty() ? start : start + " + " + image + " * " + number(elements);
    };
    std::int64_t values = 0;  // of channels
    if (epilogue_.uses_channels())
      values = program_.buffer(program_.output).shape[channel_place()] * (epilogue_.scale ? 2 : 1);
    const auto code = [&](std::int64_t place) { return "channel[" + number(values + place) + "]"; };
    const std::string y =
        from(target_pointer("y", formats_.output, code(3) + ", " + code(4)), result);
    std::string text =
        from(source_pointer("x", formats_.input, code(0) + ", 1.0f"), in) + ", packed, ";
    if (!epilogue_.empty()) {
      const std::string more =
          source_pointer("residual", formats_.output, code(1) + ", " + code(2));
      const bool codes = formats_.output == Element::kCode;
      const std::string residual = epilogue_.residual ? from(more, result)
                                   : codes            ? "Codes{}"
                                                      : "nullptr";
      text += options_.name + "_detail::Output{channel, " + residual + ", " + y + "}, ";
    }
    if (!codes_.empty()) text += "channel + " + number(values + 5) + ", ";
    return text + y;
  }

  void interface_run() {
    const std::string inside = options_.name + "_detail::";
    out_.line("void " + options_.name + "_run(const " + c_type(formats_.input) +
              "* x, const float* packed,");
    if (has_ends())
      out_.line("    [[maybe_unused]] const float* channel, [[maybe_unused]] const " +
                c_type(formats_.output) + "* residual,");
    out_.line("    " + c_type(formats_.output) +
              "* y, float* workspace, long batch, int threads) {")
        .indent();
    if (!program_.batched) out_.line("batch = 1;");
    out_.line("run_images(" + inside + "kPhases, batch, threads, workspace, " + number(shared_) +
              ", " + number(own_) + ",")
        .line("    [=](int p, long n, float* shared, float* own, const Team& team) {")
        .indent();
    out_.line(inside + "phase(p, " + phase_arguments("n") + ", shared, own, team);");
    out_.dedent().line("});");
    out_.dedent().line("}");
  }

  void interface_phase() {
    const std::string inside = options_.name + "_detail::";
    out_.line("int " + options_.name + "_phase_count(void) { return " + inside + "kPhases; }");
    out_.line("void " + options_.name + "_phase(int phase, const " + c_type(formats_.input) +
              "* x, const float* packed,");
    out_.line("    [[maybe_unused]] const float* channel, [[maybe_unused]] const " +
              c_type(formats_.output) + "* residual,");
    out_.line("    " + c_type(formats_.output) + "* y, float* workspace, long part, long parts) {")
        .indent();
    out_.line("if (part >= kMostThreads) return;  // the others do all of it");
    out_.line(inside + "phase(phase, " + phase_arguments("") + ", workspace,")
        .line("    workspace + " + number(shared_) + " + part * " + number(own_) +
              ", Team{part, team_of(parts)});");
    out_.dedent().line("}");
  }

  const Plan& plan_;
  const CppOptions& options_;
  Epilogue epilogue_;
  Schedule schedule_;
  const Formats& formats_ = schedule_.formats;
  const LoopProgram& program_ = schedule_.program;
  const std::vector<Phase>& phases_ = schedule_.phases;
  /// Buffers between contractions that are codes, in the order of their values behind those of channels.
  std::vector<int> codes_;
  /// By buffer: where it stands in the workspace, or in the packed weights.
  std::vector<std::int64_t> offsets_;
  std::vector<bool> raw_;
  std::int64_t shared_ = 0;
  std::int64_t own_ = 0;
  Printer out_{"//"};
};

}  // namespace
}  // namespace cpp

Source emit_cpp(const Plan& plan, const CppOptions& options) {
  cpp::Emitter emitter(plan, options);
  std::string text = emitter.run();
  Manifest manifest = make_manifest(plan, emitter.program(), "cpp", options.name);
  manifest.codes = emitter.codes();
  return {std::move(text), std::move(manifest)};
}

std::string cpp_runtime() {
  return cpp::runtime_text();
}

}  // namespace syno
