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

# syno_test(TARGET LABEL NAME SOURCES FILE... LIBRARIES TARGET...): one binary, every TEST known to ctest.
function(syno_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "SOURCES;LIBRARIES")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} syno_flags GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE SYNO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${target} TEST_PREFIX "${arg_LABEL}." DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${arg_LABEL} TIMEOUT 300)
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
