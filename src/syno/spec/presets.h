// Presets: the settings of the paper's experiments, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "syno/spec/specification.h"

namespace syno {

std::vector<std::string> preset_names();
/// What `name` says in a sentence.
std::string preset_doc(std::string_view name);
/// Throws UserError that lists the presets. Presets without layers of their own take the bindings of a network.
SpecificationSource preset(std::string_view name);

}  // namespace syno
