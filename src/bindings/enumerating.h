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

}  // namespace syno::bindings
