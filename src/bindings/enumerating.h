// What the bindings of enumerations share.
#pragma once

#include <string>

#include "syno/space/enumerate.h"

#include "bindings.h"

namespace syno::bindings {

/// Calls `progress`, a Python function or None, and lets an interrupt from the keyboard through. Keeps a reference.
EnumerateProgress watched(const nb::object& progress);

/// "none", "loose" or "full".
BoundMode bound_mode(const std::string& name);

/// The options of an enumeration that Python gives one by one; the others have their defaults.
EnumerateOptions enumeration_options(const RuleSet& rules, std::int64_t max_depth,
                                     std::int64_t max_nodes, std::int64_t max_memory,
                                     double max_seconds, std::int64_t threads,
                                     const std::string& bound);

}  // namespace syno::bindings
