// emit/: source text for a plan.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/cpp/network.h"
#include "syno/emit/cpp/phases.h"
#include "syno/emit/cpp/tuning.h"
#include "syno/emit/pytorch/pytorch.h"
#include "syno/emit/training/training.h"
#include "syno/emit/triton/triton.h"
#include "syno/emit/tvm/tvm.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

std::pair<std::string, std::string> text_and_manifest(Source source) {
  return {std::move(source.text), source.manifest.json()};
}

using OperandData = std::pair<std::string, std::int64_t>;
/// Layer, samples, x, channel, residual, y.
using CallData = std::tuple<int, std::int64_t, OperandData, OperandData, OperandData, OperandData>;
/// About, code, call.
using NetworkStepData = std::tuple<std::string, std::string, std::optional<CallData>>;
/// Text, input format, output format.
using KernelData = std::tuple<std::string, std::string, std::string>;
/// Kernel, elements of the weights, how the file has them.
using LayerData = std::tuple<int, std::vector<std::int64_t>, std::string>;

NetworkStep network_step(const NetworkStepData& data) {
  const auto& [about, code, call] = data;
  NetworkStep step{about, code, std::nullopt};
  if (call) {
    const auto& [layer, samples, x, channel, residual, y] = *call;
    const auto operand = [](const OperandData& given) {
      return NetworkOperand{given.first, given.second};
    };
    step.call =
        NetworkCall{layer, samples, operand(x), operand(channel), operand(residual), operand(y)};
  }
  return step;
}

/// Shape without the batch, bound of token ids or 0, shared.
using InputData = std::tuple<std::vector<std::int64_t>, std::int64_t, bool>;

NetworkProgram network_program(const std::vector<LayerData>& layers,
                               const std::vector<NetworkStepData>& steps,
                               const std::vector<InputData>& inputs,
                               std::vector<std::vector<std::int64_t>> outputs, std::int64_t arena) {
  NetworkProgram program;
  program.outputs = std::move(outputs);
  program.arena = arena;
  for (const auto& [kernel, weights, stored] : layers)
    program.layers.push_back({kernel, weights, stored});
  for (const NetworkStepData& step : steps) program.steps.push_back(network_step(step));
  for (const auto& [shape, tokens, shared] : inputs)
    program.inputs.push_back({shape, tokens, shared});
  return program;
}

std::tuple<std::string, std::string, std::size_t> network_source(
    std::string name, std::string file, std::string library, const std::vector<KernelData>& kernels,
    const std::vector<LayerData>& layers, const std::vector<NetworkStepData>& steps,
    const std::vector<InputData>& inputs, std::vector<std::vector<std::int64_t>> outputs,
    std::int64_t arena, std::int64_t constants, std::int64_t words, std::uint64_t fingerprint) {
  NetworkProgram program = network_program(layers, steps, inputs, std::move(outputs), arena);
  program.name = std::move(name);
  program.file = std::move(file);
  program.library = std::move(library);
  for (const auto& [text, input, output] : kernels)
    program.kernels.push_back({text, input, output});
  program.constants = constants;
  program.words = words;
  program.fingerprint = fingerprint;
  NetworkSource made = emit_network(program);
  return {std::move(made.code), std::move(made.header), made.parts};
}

std::string program_source(const std::vector<LayerData>& layers,
                           const std::vector<NetworkStepData>& steps,
                           const std::vector<InputData>& inputs,
                           std::vector<std::vector<std::int64_t>> outputs, std::int64_t arena) {
  return emit_program(network_program(layers, steps, inputs, std::move(outputs), arena));
}

}  // namespace

using namespace nb::literals;

void bind_emit(nb::module_& m) {
  m.def(
      "emit_pytorch",
      [](const Plan& plan, std::string formula) {
        PytorchOptions options;
        options.formula = std::move(formula);
        return text_and_manifest(emit_pytorch(plan, options));
      },
      "plan"_a, "formula"_a = "", nb::call_guard<LongCall>(),
      "The source of the class SynoOperator, a torch.nn.Module, and its manifest as JSON.");
  m.def(
      "emit_tvm",
      [](const Plan& plan, std::string formula) {
        return text_and_manifest(emit_tvm(plan, {.formula = std::move(formula)}));
      },
      "plan"_a, "formula"_a = "", nb::call_guard<LongCall>(),
      "The source of prim_func() and build() for TVM, and its manifest as JSON.");
  m.def(
      "emit_triton",
      [](const Plan& plan, std::string formula, std::int64_t least_product) {
        return text_and_manifest(
            emit_triton(plan, {.formula = std::move(formula), .least_product = least_product}));
      },
      "plan"_a, "formula"_a = "", "least_product"_a = TritonOptions{}.least_product,
      nb::call_guard<LongCall>(),
      "The source of syno_operator() and its Triton kernels, and its manifest as JSON.\n\n"
      "least_product: smallest number of rows and terms for which a nest is a matrix product.");
  m.def(
      "emit_cpp",
      [](const Plan& plan, std::string name, std::string formula, bool with_runtime,
         std::int64_t cache_floats, std::string epilogue, int channel,
         std::optional<std::vector<int>> input_order, std::optional<std::vector<int>> output_order,
         std::string precision, std::string input_format, std::string output_format,
         std::string value_format, std::string tuning) {
        const CppOptions options{
            .name = std::move(name),
            .formula = std::move(formula),
            .with_runtime = with_runtime,
            .cache_floats = cache_floats,
            .epilogue = std::move(epilogue),
            .channel = channel,
            .input_order = std::move(input_order).value_or(std::vector<int>{}),
            .output_order = std::move(output_order).value_or(std::vector<int>{}),
            .precision = std::move(precision),
            .input_format = std::move(input_format),
            .output_format = std::move(output_format),
            .value_format = std::move(value_format),
            .tuning = std::move(tuning),
        };
        return text_and_manifest(emit_cpp(plan, options));
      },
      "plan"_a, "name"_a = "syno_operator", "formula"_a = "", "with_runtime"_a = true,
      "cache_floats"_a = CppOptions{}.cache_floats, "epilogue"_a = "",
      "channel"_a = CppOptions{}.channel, "input_order"_a = nb::none(),
      "output_order"_a = nb::none(), "precision"_a = "float32", "input_format"_a = "float32",
      "output_format"_a = "float32", "value_format"_a = "float32", "tuning"_a = "",
      nb::call_guard<LongCall>(),
      "A C++ translation unit with a plain C interface, and its manifest as JSON.\n\n"
      "cache_floats: number of floats in the cache of a core; larger tensors are processed in "
      "blocks.\n"
      "epilogue: what happens to results before they are stored: parts of "
      "'scale+bias+residual+relu', in this order, with any activation in place of relu.\n"
      "channel: the dimension of y that scale and bias have values for.\n"
      "input_order, output_order: the dimensions of x, and of y and residual, in the order of "
      "memory, the outermost first; None is row-major.\n"
      "precision: what contractions multiply: 'float32', 'bfloat16' or 'int8'.\n"
      "input_format, output_format: how x, and y and residual, are stored: 'float32', with "
      "bfloat16 "
      "also 'bfloat16'; in int8 x is 'uint8', and y 'float32' or 'uint8'.\n"
      "value_format: how what contractions give to others is stored: 'float32', in int8 also "
      "'uint8'; the manifest lists these tensors as 'codes'.\n"
      "tuning: choices instead of those of the rules, such as '0: over=rows width=8'.");
  m.def("cpp_choices", &cpp_choices, "plan"_a, nb::call_guard<LongCall>(),
        "The nests of a plan in emitted C++, and what a tuning may choose of them, as JSON.");
  m.def(
      "cpp_phases",
      [](const Plan& plan, std::int64_t cache_floats) {
        CppOptions options;
        options.cache_floats = cache_floats;
        return cpp_phases(plan, options);
      },
      "plan"_a, "cache_floats"_a = CppOptions{}.cache_floats, nb::call_guard<LongCall>(),
      "What the kernel that emit_cpp emits does, phase by phase, as JSON.");
  m.def(
      "cpp_header",
      [](std::string name, std::string epilogue, std::string precision, std::string input_format,
         std::string output_format) {
        CppOptions options;
        options.name = std::move(name);
        options.epilogue = std::move(epilogue);
        options.precision = std::move(precision);
        options.input_format = std::move(input_format);
        options.output_format = std::move(output_format);
        return cpp_header(options);
      },
      "name"_a = "syno_operator", "epilogue"_a = "", "precision"_a = "float32",
      "input_format"_a = "float32", "output_format"_a = "float32",
      "The C header for the source that emit_cpp returns.");
  m.def("cpp_runtime", &cpp_runtime,
        "The text before the first operator, which emit_cpp omits with with_runtime=False.");
  m.def(
      "emit_training",
      [](const Plan& plan, std::string name, std::string formula, bool with_runtime,
         std::int64_t images) {
        const TrainingOptions options{std::move(name), std::move(formula), with_runtime, images};
        return text_and_manifest(emit_training(plan, options));
      },
      "plan"_a, "name"_a = "syno_operator", "formula"_a = "", "with_runtime"_a = true,
      "images"_a = TrainingOptions{}.images, nb::call_guard<LongCall>(),
      "A C++ translation unit with the operator and its gradients, and its manifest as JSON.\n\n"
      "images: number of elements of the batch that are processed together; 0 chooses.");
  m.def("training_runtime", &training_runtime,
        "The text before the first operator, which emit_training omits with with_runtime=False.");
  m.def("emit_network", &network_source, nb::kw_only(), "name"_a, "file"_a, "library"_a,
        "kernels"_a, "layers"_a, "steps"_a, "inputs"_a, "outputs"_a, "arena"_a, "constants"_a,
        "words"_a, "fingerprint"_a,
        "(code, header, parts) of a network as one C++ source, see network.h.");
  m.def("emit_program", &program_source, nb::kw_only(), "layers"_a, "steps"_a, "inputs"_a,
        "outputs"_a, "arena"_a,
        "The code of a part of a network that a host calls, see network.h.");
}

}  // namespace syno::bindings
