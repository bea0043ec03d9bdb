// The part of an emitted C++ file that is the same in all of them: vectors, epilogues, tiles, the drivers of a
// contraction.
#pragma once

#include <string>
#include <string_view>

namespace syno::cpp {

/// Text that stands before the first operator of a file.
std::string runtime_text();

/// The part about number formats.
std::string_view formats_runtime_text();

/// The part about epilogues.
std::string_view epilogue_runtime_text();

/// The part about contractions.
std::string_view contractions_runtime_text();

/// The part about depthwise convolutions of codes.
std::string_view depthwise_runtime_text();

}  // namespace syno::cpp
