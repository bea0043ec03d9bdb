# Settings every target of the project shares.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the layers end up in a Python extension, too

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SYNO_CCACHE ccache)
  mark_as_advanced(SYNO_CCACHE)
  if(SYNO_CCACHE) # the same objects for every checkout; precompiled headers are allowed
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${SYNO_CCACHE}")
  endif()
endif()

# Flags of the project's own code; they do not reach users of the installed library.
add_library(syno_flags INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(syno_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                              -Woverloaded-virtual -Wundef)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # false alarms in GCC 12's own <string>
    target_compile_options(syno_flags INTERFACE -Wno-restrict)
  endif()
  if(SYNO_WERROR)
    target_compile_options(syno_flags INTERFACE -Werror)
  endif()
  if(SYNO_SANITIZE)
    target_compile_options(syno_flags INTERFACE -fsanitize=${SYNO_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # its false alarms in <regex>, which only sanitizers bring out
      target_compile_options(syno_flags INTERFACE -Wno-maybe-uninitialized)
    endif()
    target_link_options(syno_flags INTERFACE -fsanitize=${SYNO_SANITIZE})
  endif()
  if(SYNO_BUILD_FUZZ) # the library reports its coverage to the fuzzers
    target_compile_options(syno_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
endif()

# Where the checkout is, in one object file: the others are the same in every checkout, and ccache finds them again.
file(WRITE "${PROJECT_BINARY_DIR}/source_dir.cpp.in"
     "namespace syno { extern const char* const kSourceDir; const char* const kSourceDir = \"${PROJECT_SOURCE_DIR}\"; }\n")
configure_file("${PROJECT_BINARY_DIR}/source_dir.cpp.in" "${PROJECT_BINARY_DIR}/source_dir.cpp" COPYONLY)
add_library(syno_source_dir STATIC EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/source_dir.cpp")
