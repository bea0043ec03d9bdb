#include "syno/emit/training/training.h"

#include <algorithm>
#include <utility>

#include "syno/emit/cpp/print_rows.h"
#include "syno/emit/cpp/runtime.h"
#include "syno/emit/printer.h"
#include "syno/emit/training/print_product.h"
#include "syno/emit/training/steps.h"
#include "syno/plan/adjoint.h"
#include "syno/support/at.h"
#include "syno/support/text.h"

namespace syno {
namespace training {
namespace {

constexpr std::int64_t kSlack = 16;
// Floats of input and output in a block of the batch.
constexpr std::int64_t kBlockFloats = std::int64_t{32} * 1024;
constexpr std::int64_t kMostImages = 64;

std::int64_t rounded(std::int64_t floats) {
  return (floats + 15) / 16 * 16;
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

// One function of the unit: the operator or its gradients.
class Function {
 public:
  Function(Printer& out, std::string name, Steps steps, std::int64_t images, bool batched)
      : out_(out),
        name_(std::move(name)),
        steps_(std::move(steps)),
        images_(images),
        batched_(batched) {
    offsets_.resize(program().buffers.size(), -1);
    for (std::size_t b = 0; b < program().buffers.size(); ++b) {
      if (!steps_.kept[b]) continue;
      offsets_[b] = floats_;
      floats_ += room_of(static_cast<int>(b));
    }
    kept_ = floats_;
    place_values();
  }

  void print_parts() {
    out_.line("namespace {");
    out_.line("namespace " + name_ + "_detail {");
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      const Step& step = steps_.steps[s];
      out_.line("// " + step.text);
      if (step.rows) cpp::print_rows(out_, program(), *step.rows, "rows_" + text(s));
      if (step.transposed) print_transposed(out_, program(), *step.transposed, "rows_" + text(s));
      if (step.product)
        print_product(out_, program(), *step.product, step.adds, "Product" + text(s));
      out_.line();
    }
    print_block();
    out_.line("}  // namespace " + name_ + "_detail");
    out_.line("}  // namespace").line();
  }

  /// The function with these parameters, of which x-like ones are advanced from block to block.
  void print_interface(bool gradients) {
    const bool pads = batched_ && images_ > 1;
    std::vector<int> data;  // buffers with a batch that the caller gives
    for (std::size_t b = 0; b < program().buffers.size(); ++b) {
      switch (program().buffers[b].kind) {
        case BufferKind::kInput:
        case BufferKind::kOutputGradient:
        case BufferKind::kInputGradient: data.push_back(static_cast<int>(b)); break;
        case BufferKind::kOutput:
          if (!gradients) data.push_back(static_cast<int>(b));
          break;
        default: break;
      }
    }
    std::int64_t room = floats_;
    std::vector<std::int64_t> padded;
    for (const int buffer : data) {
      padded.push_back(room);
      if (pads) room += rounded(program().buffer(buffer).elements() + kSlack);
    }
    out_.line("extern \"C\" long " + name_ + "_workspace(int) { return " + number(room) + "L; }");
    out_.line("extern \"C\" void " + name_ + "(" + parameters(gradients) +
              ", float* workspace, long batch, int threads) {");
    out_.indent();
    if (!batched_) out_.line("batch = 1;");
    out_.line("run_team(threads, [=](const Team& team) {").indent();
    if (kept_ > 0) out_.line("zero(workspace, " + number(kept_) + ", team);");
    std::vector<int> direct = direct_sums();
    for (const int buffer : direct)
      out_.line("zero(" + place_of(buffer) + ", " + number(program().buffer(buffer).elements()) +
                ", team);");
    if (kept_ > 0 || !direct.empty()) out_.line("wait_for_team(team);");
    out_.line("for (long n = 0; n < batch; n += " + number(images_) + ") {").indent();
    std::string arguments;
    for (std::size_t d = 0; d < data.size(); ++d) {
      const Buffer& buffer = program().buffer(data[d]);
      const std::string image = number(buffer.elements() / (batched_ ? images_ : 1));
      const bool result =
          buffer.kind == BufferKind::kOutput || buffer.kind == BufferKind::kInputGradient;
      const std::string type = result ? "float*" : "const float*";
      const std::string name = buffer.name();
      std::string from = name + " + n * " + image;
      if (buffer.kind == BufferKind::kInputGradient) from = name + " ? " + from + " : nullptr";
      out_.line(type + " " + name + "_block = " + from + ";");
      if (pads) {
        out_.line("if (batch - n < " + number(images_) +
                  (buffer.kind == BufferKind::kInputGradient ? " && " + name : "") + ") {");
        out_.indent();
        const std::string space = "workspace + " + number(padded[d]);
        if (!result) {
          out_.line("fill_block(" + space + ", " + name + "_block, (batch - n) * " + image + ", " +
                    number(buffer.elements()) + ", team);");
        }
        out_.line(name + "_block = " + space + ";");
        out_.dedent().line("}");
      }
      arguments += name + "_block, ";
    }
    if (pads) out_.line("if (batch - n < " + number(images_) + ") wait_for_team(team);");
    out_.line(name_ + "_detail::block(" + arguments + "weights, " +
              (gradients ? "dweights, " : "") + "workspace, team);");
    out_.line("wait_for_team(team);");
    for (std::size_t d = 0; d < data.size(); ++d) {
      const Buffer& buffer = program().buffer(data[d]);
      const bool result =
          buffer.kind == BufferKind::kOutput || buffer.kind == BufferKind::kInputGradient;
      if (!pads || !result) continue;
      const std::string image = number(buffer.elements() / images_);
      const std::string name = buffer.name();
      out_.line("if (" + name + " && batch - n < " + number(images_) + ") fill_block(" + name +
                " + n * " + image + ", " + name + "_block, (batch - n) * " + image +
                ", (batch - n) * " + image + ", team);");
    }
    out_.dedent().line("}");
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      if (!steps_.steps[s].last) continue;
      out_.line("{").indent();
      out_.line("using namespace " + name_ + "_detail;");
      print_call(s);
      out_.dedent().line("}");
    }
    out_.dedent().line("});");
    out_.dedent().line("}").line();
  }

 private:
  const LoopProgram& program() const { return steps_.program; }
  static std::string text(std::size_t value) { return std::to_string(value); }

  std::int64_t room_of(int buffer) const {
    return rounded(program().buffer(buffer).elements() + kSlack);
  }

  std::vector<int> read_by(const Step& step) const {
    std::vector<int> read;
    if (step.read >= 0) read.push_back(step.read);
    if (const LoopNest* nest = step.nest(); nest != nullptr) {
      for (const Access& operand : nest->operands) read.push_back(operand.buffer);
    }
    return read;
  }

  // Values take the place of others that nobody reads any more: a small workspace stays in a cache.
  void place_values() {
    std::vector<std::size_t> last(program().buffers.size(), 0);
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      last[at(steps_.steps[s].store)] = s;
      for (const int buffer : read_by(steps_.steps[s])) last[at(buffer)] = s;
    }
    std::vector<int> alive;
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      const int store = steps_.steps[s].store;
      if (program().buffer(store).kind == BufferKind::kValue && offsets_[at(store)] < 0) {
        offsets_[at(store)] = free_place(alive, room_of(store));
        floats_ = std::max(floats_, offsets_[at(store)] + room_of(store));
        alive.push_back(store);
      }
      std::erase_if(alive, [&](int buffer) { return last[at(buffer)] <= s; });
    }
  }

  // The first gap between values that are alive.
  std::int64_t free_place(std::vector<int> alive, std::int64_t room) const {
    std::sort(alive.begin(), alive.end(),
              [&](int one, int other) { return offsets_[at(one)] < offsets_[at(other)]; });
    std::int64_t place = kept_;
    for (const int buffer : alive) {
      if (offsets_[at(buffer)] - place >= room) break;
      place = offsets_[at(buffer)] + room_of(buffer);
    }
    return place;
  }

  static std::string parameters(bool gradients) {
    return gradients ? "const float* x, const float* const* weights, const float* dy, float* dx, "
                       "float* const* dweights"
                     : "const float* x, const float* const* weights, float* y";
  }

  // Sums over all blocks that are results themselves.
  std::vector<int> direct_sums() const {
    std::vector<int> found;
    for (const Step& step : steps_.steps) {
      if (step.adds && program().buffer(step.store).kind == BufferKind::kWeightGradient)
        found.push_back(step.store);
    }
    return found;
  }

  std::string place_of(int buffer) const {
    const Buffer& b = program().buffer(buffer);
    switch (b.kind) {
      case BufferKind::kWeight: return "weights[" + number(b.number) + "]";
      case BufferKind::kWeightGradient: return "dweights[" + number(b.number) + "]";
      case BufferKind::kValue: return "workspace + " + number(offsets_[at(buffer)]);
      default: return b.name();
    }
  }

  void print_call(std::size_t s) {
    const Step& step = steps_.steps[s];
    if (step.rows || step.transposed) {
      const std::string count = number(step.rows ? step.rows->count() : step.transposed->count());
      std::string call = "rows_" + text(s) + "(";
      for (const Access& operand : step.nest()->operands) call += place_of(operand.buffer) + ", ";
      out_.line(call + place_of(step.store) + ", team.begin(" + count + "), team.end(" + count +
                "));");
    } else if (step.product) {
      const LoopNest& nest = step.product->nest;
      out_.line("Product" + text(s) + "::run(" + place_of(nest.operands[0].buffer) + ", " +
                place_of(nest.operands[1].buffer) + ", " + place_of(step.store) + ", team);");
    } else {
      out_.line("add(" + place_of(step.store) + ", " + place_of(step.read) + ", " +
                number(program().buffer(step.store).elements()) + ", team);");
    }
  }

  void print_block() {
    std::string parameters;
    bool gradients = false;
    for (const Buffer& buffer : program().buffers) {
      switch (buffer.kind) {
        case BufferKind::kInput: parameters += "const float* x, "; break;
        case BufferKind::kOutputGradient:
          parameters += "const float* dy, ";
          gradients = true;
          break;
        case BufferKind::kInputGradient: parameters += "float* dx, "; break;
        default: break;
      }
    }
    if (!gradients) parameters += "float* y, ";
    parameters += "const float* const* weights, ";
    if (gradients) parameters += "float* const* dweights, ";
    out_.line("void block(" + parameters + "float* workspace, const Team& team) {").indent();
    for (std::string name : {"x", "weights", "workspace"}) out_.line("(void)" + name + ";");
    if (gradients) out_.line("(void)dy, (void)dx, (void)dweights;");
    bool first = true;
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      const Step& step = steps_.steps[s];
      if (step.last) continue;
      if (!first) out_.line("wait_for_team(team);");
      first = false;
      if (step.for_input_gradient) out_.line("if (dx) {").indent();
      print_call(s);
      if (step.for_input_gradient) out_.dedent().line("}");
    }
    out_.dedent().line("}");
  }

  Printer& out_;
  std::string name_;
  Steps steps_;
  std::int64_t images_;
  bool batched_;
  /// By buffer: where a value stands in the workspace.
  std::vector<std::int64_t> offsets_;
  std::int64_t floats_ = 0;
  std::int64_t kept_ = 0;
};

std::int64_t images_of(const Plan& plan) {
  std::int64_t floats = 1;
  for (const int tensor : {plan.input, plan.output}) {
    std::int64_t product = 1;
    const std::vector<std::int64_t> shape = plan.shape(tensor);
    for (std::size_t d = 1; d < shape.size(); ++d) product *= shape[d];
    floats += product;
  }
  std::int64_t images = 1;
  while (images < kMostImages && 2 * images * floats <= kBlockFloats) images *= 2;
  return images;
}

}  // namespace
}  // namespace training

Source emit_training(const Plan& plan, const TrainingOptions& options) {
  const bool batched = loop_program(plan).batched;
  const std::int64_t images = !batched             ? 1
                              : options.images > 0 ? options.images
                                                   : training::images_of(plan);
  const Plan block = batched ? with_batch(plan, images) : plan;
  LoopProgram forward = loop_program(block);
  forward.batched = false;
  GradientProgram gradient = gradient_program(block);
  Printer out("//");
  out.line("// Generated by Syno: a linear operator on x " + plan.tensor_text(plan.input) +
           ", and its gradients.");
  for (const std::string_view line : split_lines(options.formula))
    out.line("//     " + std::string(line));
  for (const int weight : plan.weights)
    out.line("// " + plan.tensor_name(weight) + " " + plan.tensor_text(weight));
  out.line();
  if (options.with_runtime) {
    const std::string runtime = training_runtime();
    for (const std::string_view line : split_lines(runtime)) out.line(line);
    out.line();
  }
  training::Function run(out, options.name + "_run", training::steps_of(std::move(forward), {}, -1),
                         images, batched);
  run.print_parts();
  training::Function gradients(
      out, options.name + "_gradients",
      training::steps_of(std::move(gradient.program), gradient.weight_gradients,
                         gradient.input_gradient),
      images, batched);
  gradients.print_parts();
  run.print_interface(false);
  gradients.print_interface(true);
  const LoopProgram any = loop_program(plan);
  return {out.text(), make_manifest(plan, any, "training", options.name)};
}

std::string training_runtime() {
  return std::string(cpp::runtime_text()) + training::product_runtime();
}

}  // namespace syno
