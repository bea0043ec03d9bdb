# Settings every target of the project shares.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the layers end up in a Python extension, too

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SYNO_CCACHE ccache)
  mark_as_advanced(SYNO_CCACHE)
  if(SYNO_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${SYNO_CCACHE}")
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
    target_link_options(syno_flags INTERFACE -fsanitize=${SYNO_SANITIZE})
  endif()
  if(SYNO_BUILD_FUZZ) # the library reports its coverage to the fuzzers
    target_compile_options(syno_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
endif()
