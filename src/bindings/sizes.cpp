// sizes/: names in size strings, and bindings as dicts.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "syno/sizes/size.h"
#include "syno/support/error.h"

#include "bindings.h"

namespace syno::bindings {

void bind_sizes(nb::module_& m) {
  m.def("size_names", &Size::names_in, nb::arg("text"),
        "The names of the variables in a size such as 's^-1*C_in'. Raises UserError with the "
        "column.");
  m.def(
      "parse_binding", [](std::string_view text) { return Binding::parse(text).values(); },
      nb::arg("text"),
      "Parses a binding such as 'C_in=64, H=56'. Raises UserError with the column.");
  m.def(
      "evaluate_size",
      [](std::string_view text, const Bound& binding) {
        const VariablesPtr variables = Variables::make(Size::names_in(text));
        const auto value =
            Size::parse(text, *variables).evaluate(Binding(binding).resolve(*variables));
        if (!value) {
          throw Complaint("size " + std::string(text) + " is not a positive integer")
              .where("binding \"" + Binding(binding).text() + "\"")
              .error();
        }
        return *value;
      },
      nb::arg("text"), nb::arg("binding"),
      "The value of a size under a binding. Raises UserError if it is not a positive integer.");
}

}  // namespace syno::bindings
