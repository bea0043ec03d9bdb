// spec/: specifications as values, limits and presets.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "syno/spec/limits.h"
#include "syno/spec/presets.h"
#include "syno/spec/specification.h"
#include "syno/support/error.h"

#include "described_options.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

nb::object limit_value(const Option<Limits>& option, const Limits& limits) {
  return std::visit([&](auto field) { return nb::cast(limits.*field); }, option.member);
}

nb::dict limits_dict(const Limits& limits) {
  nb::dict values;
  for (const Option<Limits>& option : limit_options())
    values[nb::str(option.name.data(), option.name.size())] = limit_value(option, limits);
  return values;
}

// The fields of a specification's constructor, by name.
nb::dict source_dict(const SpecificationSource& source) {
  nb::dict fields;
  fields["input"] = source.input;
  fields["output"] = source.output;
  fields["primary"] = source.primary;
  fields["coefficient"] = source.coefficient;
  std::vector<Bound> bindings;
  for (const Binding& binding : source.bindings) bindings.push_back(binding.values());
  fields["bindings"] = bindings;
  fields["multiplicities"] = source.multiplicities;
  fields["layer_macs"] = source.layer_macs;
  fields["passed_through"] = source.passed_through;
  fields["symmetries"] = source.symmetries;
  fields["limits"] = limits_dict(source.limits);
  return fields;
}

Bound named_values(const Specification& spec, const Values& values) {
  Bound named;
  for (std::size_t v = 0; v < values.size(); ++v) named[spec.variables()->name(v)] = values[v];
  return named;
}

std::vector<Bound> full_bindings(const Specification& spec) {
  std::vector<Bound> bindings;
  for (const Values& values : spec.bindings()) bindings.push_back(named_values(spec, values));
  return bindings;
}

// Values of the variables that have a default, and 1 for primaries that only passed-through dimensions use.
Bound defaults(const Specification& spec) {
  const auto used = [&](const Shape& shape, std::size_t v, auto passes) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!passes(static_cast<int>(d)) && shape[d].size.power(v) != 0) return true;
    }
    return false;
  };
  Bound values;
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    const VariableInfo& info = spec.variable(v);
    const bool closed = used(spec.input(), v, [&](int d) { return spec.passes_input(d); }) ||
                        used(spec.output(), v, [&](int d) { return spec.passes_output(d); });
    if (info.primary && !closed) values[info.name] = 1;
    if (info.value) values[info.name] = *info.value;
  }
  return values;
}

}  // namespace

void bind_spec(nb::module_& m) {
  m.def(
      "option_descriptors", [] { return described_options(limit_options()); },
      nb::sig("def option_descriptors() -> list[LimitDescriptor]"),
      "The name, type, default, minimum and doc of every limit of a specification.");
  m.def("preset_names", &preset_names, "The names of the presets.");
  m.def("preset_doc", &preset_doc, "name"_a, "A description of a preset in one sentence.");
  m.def(
      "preset_source", [](std::string_view name) { return source_dict(preset(name)); }, "name"_a,
      nb::sig("def preset_source(name: str) -> SpecificationFields"),
      "The fields of a preset. The UserError for an unknown preset lists the presets.");

  nb::class_<Specification>(m, "Specification", "Shapes, variables, bindings and limits.")
      .def(
          "__init__",
          [](Specification* self, std::string input, std::string output,
             std::vector<std::string> primary, std::vector<std::string> coefficient,
             const std::vector<Bound>& bindings, std::vector<std::int64_t> multiplicities,
             std::vector<double> layer_macs, std::vector<std::pair<int, int>> passed_through,
             std::vector<std::string> symmetries, const std::map<std::string, double>& limits) {
            SpecificationSource source;
            source.input = std::move(input);
            source.output = std::move(output);
            source.primary = std::move(primary);
            source.coefficient = std::move(coefficient);
            for (const Bound& binding : bindings) source.bindings.emplace_back(binding);
            source.multiplicities = std::move(multiplicities);
            source.layer_macs = std::move(layer_macs);
            source.passed_through = std::move(passed_through);
            source.symmetries = std::move(symmetries);
            for (const auto& [name, value] : limits) set_limit(source.limits, name, value);
            new (self) Specification(std::move(source));
          },
          "input"_a, "output"_a, "primary"_a, "coefficient"_a, "bindings"_a, "multiplicities"_a,
          "layer_macs"_a, "passed_through"_a, "symmetries"_a, "limits"_a)
      .def_prop_ro(
          "source", [](const Specification& spec) { return source_dict(spec.source()); },
          nb::sig("def source(self) -> SpecificationFields"),
          "The fields that define the specification.")
      .def_prop_ro("text", &Specification::text, "\"input -> output\".")
      .def_prop_ro(
          "key", [](const Specification& spec) { return spec.key().hex(); },
          "A hash of the content, 32 hexadecimal digits.")
      .def_prop_ro("variables", [](const Specification& spec) { return spec.variables()->names(); })
      .def_prop_ro("defaults", &defaults, "The values of variables that a binding may omit.")
      .def_prop_ro("full_bindings", &full_bindings,
                   "The bindings, with the values of all variables.")
      .def_prop_ro("multiplicities",
                   [](const Specification& spec) { return spec.multiplicities(); });
}

}  // namespace syno::bindings
