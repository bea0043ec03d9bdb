// Where this checkout is, for tests and benchmarks that read its files.
#pragma once

namespace syno {

/// The absolute path of the project's root; cmake/SynoSettings.cmake defines it.
extern const char* const kSourceDir;

}  // namespace syno
