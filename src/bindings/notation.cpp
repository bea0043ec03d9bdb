// notation/: index formulas.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/notation/formula.h"
#include "syno/notation/parse.h"

#include "bindings.h"

namespace syno::bindings {

using namespace nb::literals;

void bind_notation(nb::module_& m) {
  m.def(
      "formula", [](const Operator& op, bool stages) { return formula(op, stages); }, "op"_a,
      "stages"_a, nb::call_guard<LongCall>(),
      "The operator in index notation: one line, or one for each weight.");
  m.def(
      "parse_formula",
      [](const std::string& text, std::string input, std::string output, const Bound& values) {
        ParsedFormula parsed = parse_formula(text, {std::move(input), std::move(output), values});
        std::vector<std::pair<std::string, std::vector<int>>> weights;
        for (NamedWeight& weight : parsed.weights)
          weights.emplace_back(std::move(weight.name), std::move(weight.dims));
        return std::pair(std::move(parsed.op), std::move(weights));
      },
      "text"_a, "input"_a, "output"_a, "values"_a, nb::call_guard<LongCall>(),
      "Parses index notation. Returns the operator, and for each of its weights the name in the "
      "text and, "
      "for each dimension, the index in the text. Raises UserError.");
}

}  // namespace syno::bindings
