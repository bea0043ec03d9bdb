// Option descriptors as Python has them.
#pragma once

#include <nanobind/stl/string_view.h>
#include <span>
#include <string_view>
#include <variant>

#include "syno/support/options.h"

#include "bindings.h"

namespace syno::bindings {

/// For each option a dict with name, type, default, minimum and doc.
template <class Owner>
nb::list described_options(std::span<const Option<Owner>> options) {
  static constexpr std::string_view kTypes[] = {"int", "float", "bool"};
  nb::list descriptors;
  for (const Option<Owner>& option : options) {
    nb::dict descriptor;
    const std::string_view type = kTypes[option.member.index()];
    descriptor["name"] = option.name;
    descriptor["type"] = type;
    descriptor["default"] =
        std::visit([](auto field) { return nb::cast(Owner().*field); }, option.member);
    if (type == "float") {
      descriptor["minimum"] = option.minimum;
    } else {
      descriptor["minimum"] = static_cast<std::int64_t>(option.minimum);
    }
    descriptor["doc"] = option.doc;
    descriptors.append(descriptor);
  }
  return descriptors;
}

}  // namespace syno::bindings
