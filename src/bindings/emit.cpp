// emit/: source text for a plan.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

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
}

}  // namespace syno::bindings
