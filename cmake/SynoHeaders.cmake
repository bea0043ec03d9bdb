# The headers that most sources read, compiled once: most of the time that small sources take is that of these. Presets
# other than `release` go without: they find a missing #include.
option(SYNO_PCH "Precompile the headers that most sources read" OFF)
set(SYNO_STANDARD_HEADERS <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <set> <span> <sstream>
                          <string> <string_view> <unordered_map> <utility> <variant> <vector>)
# The first is for ccache. GCC 12 warns of its own <string>, which it takes for a header of the project here.
set(SYNO_PCH_FLAGS $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
                   $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)

# syno_headers(TARGET HEADER...): TARGET precompiles these and the standard headers.
function(syno_headers target)
  if(SYNO_PCH)
    target_precompile_headers(${target} PRIVATE ${SYNO_STANDARD_HEADERS} ${ARGN})
    target_compile_options(${target} PRIVATE ${SYNO_PCH_FLAGS})
  endif()
endfunction()

# syno_headers_of(TARGET NAME): TARGET reads what the target NAME precompiles. The flags of both are the same.
function(syno_headers_of target name)
  if(SYNO_PCH)
    target_precompile_headers(${target} REUSE_FROM ${name})
    target_compile_options(${target} PRIVATE ${SYNO_PCH_FLAGS})
  endif()
endfunction()

# What the libraries of the layers read.
file(WRITE "${PROJECT_BINARY_DIR}/headers.cpp.in" "// Compiles the headers that the library reads.\n")
configure_file("${PROJECT_BINARY_DIR}/headers.cpp.in" "${PROJECT_BINARY_DIR}/headers.cpp" COPYONLY)
add_library(syno_library_headers OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/headers.cpp")
target_compile_features(syno_library_headers PRIVATE cxx_std_20)
target_link_libraries(syno_library_headers PRIVATE syno_flags Threads::Threads)
syno_headers(syno_library_headers)
