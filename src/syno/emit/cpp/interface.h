// The C interface of emitted code: its types, and its header (cpp_header of cpp.h).
#pragma once

#include <string>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/cpp/schedule.h"

namespace syno::cpp {

/// UserError for formats that do not fit together.
Formats parse_formats(const CppOptions& options);

/// What a pointer of the interface points to.
std::string c_type(Element element);

/// The pointer of that name as the kernel sees it. codes: its zero and its scale, or 1 / its scale.
std::string source_pointer(const std::string& name, Element element, const std::string& codes);
std::string target_pointer(const std::string& name, Element element, const std::string& codes);

}  // namespace syno::cpp
