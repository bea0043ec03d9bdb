# GoogleTest: the installed one when there is one, otherwise fetched.
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(STATUS "syno: GoogleTest is not installed (Debian: libgtest-dev); fetching it")
  include(FetchContent)
  FetchContent_Declare(googletest GIT_REPOSITORY https://github.com/google/googletest.git
                                  GIT_TAG v1.14.0 GIT_SHALLOW ON)
  set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
  FetchContent_MakeAvailable(googletest)
endif()
include(GoogleTest)

# Tests are compiled often and run for seconds: most of their time is that of the compiler. GCC 12 gives more false alarms
# about <string> with these flags.
add_library(syno_test_flags INTERFACE)
target_link_libraries(syno_test_flags INTERFACE syno_flags)
target_compile_options(syno_test_flags INTERFACE $<$<CONFIG:Release>:-O1>
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow>)

# An executable, so that its flags (-fPIE) are those of the tests.
file(WRITE "${PROJECT_BINARY_DIR}/test_headers.cpp.in" "int main() { return 0; }  // Compiles the headers that all tests read.\n")
configure_file("${PROJECT_BINARY_DIR}/test_headers.cpp.in" "${PROJECT_BINARY_DIR}/test_headers.cpp" COPYONLY)
add_executable(syno_test_headers EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/test_headers.cpp")
target_compile_features(syno_test_headers PRIVATE cxx_std_20)
target_link_libraries(syno_test_headers PRIVATE syno_test_flags Threads::Threads GTest::gtest_main)
syno_headers(syno_test_headers <gtest/gtest.h>)

# Most of what compiling a test takes is the same for all tests of a layer. Names in them are different then.
option(SYNO_TEST_UNITY "Compile several tests of a layer as one source" OFF)

# A hung test ends after this many seconds. Sanitizers make the longest tests twenty times slower.
set(SYNO_TEST_TIMEOUT 300)
if(SYNO_SANITIZE)
  set(SYNO_TEST_TIMEOUT 3600)
endif()

# syno_test(TARGET LABEL NAME SOURCES FILE... LIBRARIES TARGET...): one binary, every TEST known to ctest.
function(syno_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "SOURCES;LIBRARIES")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} syno_test_flags GTest::gtest_main syno_source_dir)
  syno_headers_of(${target} syno_test_headers)
  if(SYNO_TEST_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  gtest_discover_tests(${target} TEST_PREFIX "${arg_LABEL}." DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${SYNO_TEST_TIMEOUT})
endfunction()

# Tests that cross layers: tests/<folder>/*_test.cpp -> syno_<folder>_tests, over all layers.
function(syno_cross_layer_tests)
  list(TRANSFORM SYNO_LAYERS PREPEND syno_ OUTPUT_VARIABLE libraries)
  file(GLOB folders CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*")
  foreach(folder IN LISTS folders)
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*_test.cpp")
    if(sources)
      get_filename_component(name "${folder}" NAME)
      syno_test(syno_${name}_tests LABEL ${name} SOURCES ${sources} LIBRARIES ${libraries})
    endif()
  endforeach()
endfunction()
