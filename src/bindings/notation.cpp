// notation/: index formulas.
#include <nanobind/stl/string.h>

#include "syno/notation/formula.h"

#include "bindings.h"

namespace syno::bindings {

using namespace nb::literals;

void bind_notation(nb::module_& m) {
  m.def(
      "formula", [](const Operator& op) { return formula(op); }, "op"_a,
      "The operator in index notation, one line.");
}

}  // namespace syno::bindings
