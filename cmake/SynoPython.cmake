# src/bindings/*.cpp -> syno._core, the private extension.
#
# In a wheel it is installed into the package; in the source tree it is written into python/syno/, so that
# the package in python/ is complete as soon as the build is (the editable install points there).
# Target `syno_stub` writes python/syno/_core.pyi, which is in git and compared by tests/bindings/test_stubs.py.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT
                RESULT_VARIABLE status ERROR_VARIABLE message)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "nanobind is missing in ${Python_EXECUTABLE}: run `make venv`, or pip install nanobind\n${message}")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/bindings/*.cpp"
     "${PROJECT_SOURCE_DIR}/src/bindings/*.h")
if(sources AND TARGET syno)
  set(package "${PROJECT_SOURCE_DIR}/python/syno")
  nanobind_add_module(_core NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE ${sources})
  list(TRANSFORM SYNO_LAYERS PREPEND syno_ OUTPUT_VARIABLE layers)
  target_link_libraries(_core PRIVATE ${layers} syno_flags)
  target_include_directories(_core PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_definitions(_core PRIVATE SYNO_VERSION="${PROJECT_VERSION}")
  syno_headers(_core <nanobind/nanobind.h> <nanobind/stl/map.h> <nanobind/stl/optional.h> <nanobind/stl/pair.h>
               <nanobind/stl/string.h> <nanobind/stl/vector.h>)
  if(SKBUILD)
    install(TARGETS _core LIBRARY DESTINATION syno)
  else()
    set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${package}")
    nanobind_add_stub(syno_stub MODULE syno._core OUTPUT "${package}/_core.pyi"
                      PYTHON_PATH "${PROJECT_SOURCE_DIR}/python" DEPENDS _core
                      PATTERN_FILE "${PROJECT_SOURCE_DIR}/src/bindings/stub_patterns.txt")
    set_target_properties(syno_stub PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
else()
  message(STATUS "syno: src/bindings has no sources yet; syno._core is not built")
endif()
