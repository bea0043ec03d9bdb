#include "syno/emit/cpp/cpp.h"

#include <algorithm>
#include <optional>

#include "syno/emit/cpp/contraction.h"
#include "syno/emit/cpp/rows.h"
#include "syno/emit/cpp/runtime.h"
#include "syno/emit/printer.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace cpp {
namespace {

// Vectors may read so many floats behind a buffer of ours.
constexpr std::int64_t kSlack = 64;
// A producer is computed inside of a panel that has at most so many times its elements, and where it costs at most this
// share of the contraction's multiply-adds.
constexpr double kMostRepeats = 1.4;
constexpr double kMostInlineShare = 0.25;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

std::int64_t rounded(std::int64_t floats) {
  return (floats + 15) / 16 * 16;
}

// The terms of a flat index that depend on some axes alone; nothing when a term mixes them with others.
std::optional<Index> part(const Index& index, const std::vector<int>& axes,
                          std::size_t axis_count) {
  Index result;
  for (const Index::Term& term : index.terms()) {
    bool inside = false;
    bool outside = false;
    for (std::size_t a = 0; a < axis_count; ++a) {
      const int axis = static_cast<int>(a);
      const bool depends =
          term.kind == Index::Kind::kAxis ? term.axis == axis : term.of->depends_on(axis);
      if (!depends) continue;
      const bool listed = std::find(axes.begin(), axes.end(), axis) != axes.end();
      (listed ? inside : outside) = true;
    }
    if (inside && outside) return std::nullopt;
    if (inside) result = result + Index::term(term);
  }
  return result;
}

struct Phase {
  /// Rows: the loops. Contractions: how the panel is filled, if there is one.
  std::optional<RowLoops> rows;
  std::optional<Contraction> contraction;
  int store = -1;
  /// Contractions with a panel: the buffer it is.
  int panel = -1;
};

class Emitter {
 public:
  Emitter(const Plan& plan, const CppOptions& options)
      : plan_(plan), options_(options), program_(loop_program(plan)) {}

  std::string run() {
    schedule();
    place();
    head();
    // Nothing of it may be seen outside: a process may load many operators, whose parts have equal names, and the
    // loader makes one of static members that it can see.
    out_.line("namespace {");
    out_.line("namespace " + options_.name + "_detail {").line();
    for (std::size_t p = 0; p < phases_.size(); ++p) {
      out_.line("// " + text_of(phases_[p]));
      if (phases_[p].rows) {
        print_rows(out_, program_, *phases_[p].rows, rows_name(p));
        out_.line();
      }
      if (phases_[p].contraction) {
        print_contraction(p);
        out_.line();
      }
    }
    packed_offsets();
    image_function();
    out_.line().line("}  // namespace " + options_.name + "_detail");
    out_.line("}  // namespace").line();
    interface();
    return out_.text();
  }

  const LoopProgram& program() const { return program_; }

 private:
  // --- what runs how ----------------------------------------------------------------------------------------------

  void schedule() {
    std::vector<LoopNest> nests;
    for (const LoopNest& nest : program_.nests) nests.push_back(without_batch(program_, nest));
    std::vector<bool> done(nests.size(), false);
    std::vector<Phase> reversed;
    for (std::size_t n = nests.size(); n-- > 0;) {
      if (done[n]) continue;
      Phase phase;
      phase.store = nests[n].store.buffer;
      const LoopNest nest = merged(program_, nests[n]);
      phase.contraction = match_contraction(program_, nest);
      if (phase.contraction && !is_separable(*phase.contraction)) phase.contraction.reset();
      if (!phase.contraction) {
        phase.rows = row_loops(program_, nest, false);
      } else if (!phase.contraction->in_place) {
        fill_panel(phase, nests, done);
      }
      reversed.push_back(std::move(phase));
    }
    phases_.assign(std::make_move_iterator(reversed.rbegin()),
                   std::make_move_iterator(reversed.rend()));
  }

  bool is_separable(const Contraction& c) const {
    const Index stored = flat_address(program_, c.nest, c.nest.store);
    const std::size_t count = c.nest.axes.size();
    std::vector<int> outer = c.groups;
    outer.insert(outer.end(), c.slices.begin(), c.slices.end());
    return part(stored, outer, count) && part(stored, c.rows, count) &&
           part(stored, c.columns, count);
  }

  void fill_panel(Phase& phase, const std::vector<LoopNest>& nests, std::vector<bool>& done) {
    Contraction& c = *phase.contraction;
    Buffer buffer;
    buffer.kind = BufferKind::kValue;
    buffer.number = -1;
    buffer.shape = c.panel_shape;
    program_.buffers.push_back(buffer);
    phase.panel = static_cast<int>(program_.buffers.size()) - 1;
    c.fill.store.buffer = phase.panel;
    const int read = c.fill.operands[0].buffer;
    for (std::size_t p = 0; p < nests.size(); ++p) {
      if (done[p] || nests[p].store.buffer != read) continue;
      const double repeats = static_cast<double>(buffer.elements()) /
                             static_cast<double>(program_.buffer(read).elements());
      const double share =
          static_cast<double>(nests[p].macs()) / static_cast<double>(c.nest.macs());
      if (repeats > kMostRepeats || share > kMostInlineShare) break;
      c.fill = inlined(c.fill, 0, nests[p]);
      done[p] = true;
      break;
    }
    if (!c.private_panel) c.fill = merged(program_, c.fill);
    phase.rows = row_loops(program_, c.fill, c.private_panel);
  }

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
      if (value && !in_packed(phase.store)) share(phase.store);
      if (phase.panel >= 0) {
        if (phase.contraction->private_panel) {
          own_ = std::max(own_, rounded(phase.contraction->block_elements() + kSlack));
        } else {
          share(phase.panel);
        }
      }
    }
  }

  void share(int buffer) {
    offsets_[at(buffer)] = shared_;
    shared_ += rounded(image_elements(buffer) + kSlack);
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
  static std::string contract_name(std::size_t phase) {
    return "Contraction" + std::to_string(phase);
  }

  std::string text_of(const Phase& phase) const {
    for (const LoopNest& nest : program_.nests) {
      if (nest.store.buffer == phase.store) return program_.text(nest);
    }
    throw InternalError("emit_cpp: a phase without a nest");
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
      for (const std::string_view line : split_lines(runtime_text())) out_.line(line);
      out_.line();
    }
  }

  // A function of a flattened index of some axes.
  void place_function(const std::string& head, const LoopNest& nest, const std::vector<int>& axes,
                      const std::string& flat, const Index& value) {
    if (value.is_constant()) {
      out_.line("static long " + head + "(long) { return " + number(value.constant()) + "; }");
      return;
    }
    const bool simple = axes.size() == 1;
    if (simple) {
      std::vector<std::string> names(nest.axes.size(), "?");
      names[at(axes[0])] = flat;
      out_.line("static long " + head + "(long " + flat + ") { return " + value.text(names) +
                "; }");
      return;
    }
    out_.line("static long " + head + "(long " + flat + ") {").indent();
    print_decode(out_, nest, axes, flat);
    out_.line("return " + value.text(c_names(nest)) + ";");
    out_.dedent().line("}");
  }

  void print_contraction(std::size_t p) {
    const Contraction& c = *phases_[p].contraction;
    const LoopNest& nest = c.nest;
    const std::size_t count = nest.axes.size();
    const Index stored = flat_address(program_, nest, nest.store);
    const auto constant = [&](const std::string& name, std::int64_t value) {
      out_.line("static constexpr long " + name + " = " + number(value) + ";");
    };
    out_.line("struct " + contract_name(p) + " {").indent();
    constant("kGroups", c.product(c.groups));
    constant("kSlices", c.slice_count());
    constant("kRows", c.row_count());
    constant("kTerms", c.term_count());
    constant("kTaps", c.tap_count());
    constant("kBlock", c.column_count() / c.blocks);
    constant("kPoint", c.point);
    out_.line("static constexpr bool kInPlace = " + std::string(c.in_place ? "true" : "false") +
              ";");
    out_.line("static constexpr float kScale = " + number(nest.scale) + ";");

    const Index columns = *part(stored, c.columns, count);
    const Index rows = *part(stored, c.rows, count);
    bool side_by_side = true;
    std::int64_t next = 1;
    for (std::size_t i = c.columns.size(); i-- > 0;) {
      side_by_side = side_by_side && columns.coefficient(c.columns[i]) == next;
      next *= nest.axes[at(c.columns[i])].extent;
    }
    side_by_side = side_by_side && columns.is_affine() && c.point == 1;
    const bool rows_side_by_side =
        c.rows.size() == 1 && rows.is_affine() && rows.coefficient(c.rows[0]) == 1;
    out_.line("static constexpr bool kColumnsAreContiguous = " +
              std::string(side_by_side ? "true" : "false") + ";");
    out_.line("static constexpr bool kRowsAreContiguous = " +
              std::string(rows_side_by_side ? "true" : "false") + ";");

    std::vector<int> outer = c.groups;
    outer.insert(outer.end(), c.slices.begin(), c.slices.end());
    if (c.in_place) {
      const Index address = flat_address(program_, nest, nest.operands[c.data]);
      place_function("data", nest, outer, "s",
                     *part(address, outer, count) + Index(address.constant()));
      place_function("term", nest, c.terms, "k", *part(address, c.terms, count));
    } else {
      const std::int64_t terms = c.term_count();
      out_.line("static long data(long s) { return s * " + number(c.block_elements()) + "; }");
      out_.line("static long term(long k) { return k * " + number(c.block_elements() / terms) +
                "; }");
    }
    tap_function(c);
    place_function("row", nest, c.rows, "m", rows);
    place_function("column", nest, c.columns, "n", columns);
    place_function("result", nest, outer, "s",
                   *part(stored, outer, count) + Index(stored.constant()));
    out_.line("static long group(long s) { return s / " + number(c.product(c.slices)) + "; }");
    weight_function(c);
    out_.dedent().line("};");
  }

  void tap_function(const Contraction& c) {
    std::vector<std::string> places;
    for (std::int64_t t = 0; t < c.tap_count(); ++t) {
      std::int64_t rest = t;
      std::int64_t rows = 0;
      for (std::size_t a = c.taps.size(); a-- > 0;) {
        const std::int64_t extent = c.nest.axes[at(c.taps[a])].extent;
        rows += rest % extent * c.tap_steps[a];
        rest /= extent;
      }
      places.push_back(number(rows * c.width()));
    }
    out_.line("static constexpr long kPlaces[] = {" + join(places, ", ") + "};");
    out_.line("static constexpr long tap(long t) { return kPlaces[t]; }");
  }

  void weight_function(const Contraction& c) {
    const Access& weight = c.nest.operands[c.weight];
    out_.line(
        "static float weight([[maybe_unused]] const float* w, [[maybe_unused]] long g, "
        "[[maybe_unused]] long m,");
    out_.line("                    [[maybe_unused]] long k, [[maybe_unused]] long t) {").indent();
    print_decode(out_, c.nest, c.groups, "g");
    print_decode(out_, c.nest, c.rows, "m");
    print_decode(out_, c.nest, c.terms, "k");
    print_decode(out_, c.nest, c.taps, "t");
    const std::vector<std::string> names = c_names(c.nest);
    for (const Condition& condition : weight.conditions) {
      out_.line("if (static_cast<unsigned long>(" + condition.index.text(names) +
                ") >= " + number(condition.extent) + ") return 0.0f;");
    }
    out_.line("return w[" + flat_address(program_, c.nest, weight).text(names) + "];");
    out_.dedent().line("}");
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
      if (!phases_[p].contraction) continue;
      const std::string name = "kPacked" + number(static_cast<std::int64_t>(p));
      out_.line("constexpr long " + name + " = " + previous + ";");
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
    return "shared + " + number(offsets_[at(buffer)]);
  }

  std::string call_rows(std::size_t p, const std::string& to, const std::string& begin,
                        const std::string& end) const {
    std::string call = rows_name(p) + "(";
    for (const Access& operand : phases_[p].rows->nest.operands)
      call += place_of(operand.buffer) + ", ";
    return call + to + ", " + begin + ", " + end + ");";
  }

  void image_function() {
    out_.line(
        "void image([[maybe_unused]] const float* x, [[maybe_unused]] const float* packed, "
        "float* y,");
    out_.line(
            "           [[maybe_unused]] float* shared, [[maybe_unused]] float* own, const Team& "
            "team) {")
        .indent();
    for (std::size_t p = 0; p < phases_.size(); ++p) {
      const Phase& phase = phases_[p];
      if (in_packed(phase.store)) continue;
      if (!phase.contraction) {
        const std::string count = number(phase.rows->count());
        out_.line(call_rows(p, place_of(phase.store), "team.begin(" + count + ")",
                            "team.end(" + count + ")"));
      } else {
        run_contraction(p);
      }
      if (p + 1 < phases_.size()) out_.line("wait_for_team(team);");
    }
    out_.dedent().line("}");
  }

  void run_contraction(std::size_t p) {
    const Phase& phase = phases_[p];
    const Contraction& c = *phase.contraction;
    const std::string name = contract_name(p);
    const std::string packed = "packed + kPacked" + number(static_cast<std::int64_t>(p));
    const std::string y = place_of(phase.store);
    if (phase.panel >= 0 && c.private_panel) {
      const std::string units = number(c.blocks * c.slice_count());
      const std::string slices = number(c.slice_count());
      const std::string rows = number(phase.rows->count() / (c.blocks * c.slice_count()));
      out_.line("for (long unit = team.begin(" + units + "); unit < team.end(" + units +
                "); ++unit) {")
          .indent();
      out_.line("const long block = unit / " + slices + ", slice = unit % " + slices + ";");
      out_.line(call_rows(p, "own - unit * " + number(c.block_elements()), "unit * " + rows,
                          "(unit + 1) * " + rows));
      out_.line("Block<" + name + ">::run(own, " + packed + " + " + name +
                "::group(slice) * Tiling<" + name + ">::kPackedGroup, " + y + " + " + name +
                "::result(slice) + block * " + name + "::kBlock, 0, Block<" + name + ">::kTiles);");
      out_.dedent().line("}");
      return;
    }
    std::string data;
    if (phase.panel >= 0) {
      const std::string count = number(phase.rows->count());
      data = "shared + " + number(offsets_[at(phase.panel)]);
      out_.line(call_rows(p, data, "team.begin(" + count + ")", "team.end(" + count + ")"));
      out_.line("wait_for_team(team);");
    } else {
      data = place_of(c.nest.operands[c.data].buffer);
    }
    out_.line("run_blocks<" + name + ">(" + data + ", " + packed + ", " + y + ", team);");
  }

  void interface() {
    const std::string& name = options_.name;
    const std::string inside = name + "_detail::";
    out_.line("extern \"C\" {");
    out_.line("long " + name + "_packed_size(void) { return " + inside + "kPackedSize; }");
    out_.line("long " + name + "_workspace_size(int threads) { return " + number(shared_) +
              " + threads * " + number(own_) + "L; }");
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
    out_.line("void " + name +
              "_run(const float* x, const float* packed, float* y, float* workspace, long batch,");
    out_.line("    int threads) {").indent();
    const std::int64_t in = image_elements(program_.input);
    const std::int64_t result = image_elements(program_.output);
    if (!program_.batched) out_.line("batch = 1;");
    out_.line("run_team(threads, [=](const Team& team) {").indent();
    out_.line("for (long n = 0; n < batch; ++n) {").indent();
    out_.line(inside + "image(x + n * " + number(in) + ", packed, y + n * " + number(result) +
              ", workspace,");
    out_.line("    workspace + " + number(shared_) + " + team.thread * " + number(own_) +
              ", team);");
    if (shared_ > 0) out_.line("wait_for_team(team);");
    out_.dedent().line("}");
    out_.dedent().line("});");
    out_.dedent().line("}");
    out_.line("}");
  }

  const Plan& plan_;
  const CppOptions& options_;
  LoopProgram program_;
  std::vector<Phase> phases_;
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
  return {std::move(text), make_manifest(plan, emitter.program(), "cpp", options.name)};
}

std::string cpp_runtime() {
  return std::string(cpp::runtime_text());
}

std::string cpp_header(const CppOptions& options) {
  const std::string& name = options.name;
  return "#pragma once\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
         "/* Floats that pack writes. */\nlong " +
         name +
         "_packed_size(void);\n"
         "/* Once a model: the weights in the order that the kernels read them in. */\nvoid " +
         name +
         "_pack(const float* const* weights, float* packed);\n"
         "/* Floats of scratch memory. */\nlong " +
         name +
         "_workspace_size(int threads);\n"
         "void " +
         name +
         "_run(const float* x, const float* packed, float* y, float* workspace, long batch,\n"
         "    int threads);\n#ifdef __cplusplus\n}\n#endif\n";
}

}  // namespace syno
