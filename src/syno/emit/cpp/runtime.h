// The part of an emitted C++ file that is the same in all of them: vectors, tiles, the drivers of a contraction.
#pragma once

#include <string_view>

namespace syno::cpp {

/// Text that stands before the first operator of a file.
std::string_view runtime_text();

}  // namespace syno::cpp
