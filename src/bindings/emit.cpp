// emit/: source text for a plan.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/pytorch/pytorch.h"

#include "bindings.h"

namespace syno::bindings {

using namespace nb::literals;

void bind_emit(nb::module_& m) {
  m.def(
      "emit_pytorch",
      [](const Plan& plan, std::string formula) {
        PytorchOptions options;
        options.formula = std::move(formula);
        Source source = emit_pytorch(plan, options);
        return std::pair(std::move(source.text), source.manifest.json());
      },
      "plan"_a, "formula"_a = "",
      "The source of the class SynoOperator, a torch.nn.Module, and its manifest as JSON.");
  m.def(
      "emit_cpp",
      [](const Plan& plan, std::string name, std::string formula, bool with_runtime) {
        const CppOptions options{std::move(name), std::move(formula), with_runtime};
        Source source = emit_cpp(plan, options);
        return std::pair(std::move(source.text), source.manifest.json());
      },
      "plan"_a, "name"_a = "syno_operator", "formula"_a = "", "with_runtime"_a = true,
      "A C++ translation unit with a plain C interface, and its manifest as JSON.");
  m.def(
      "cpp_header", [](std::string name) { return cpp_header({std::move(name), "", true}); },
      "name"_a = "syno_operator", "The C header of what emit_cpp defines.");
  m.def("cpp_runtime", &cpp_runtime,
        "What stands before the first operator where emit_cpp leaves it out.");
}

}  // namespace syno::bindings
