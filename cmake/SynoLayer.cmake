# syno_layer(NAME [DEPENDS LAYER...] [TEST_DEPENDS LAYER...]): the static library `syno_NAME` from src/syno/NAME, and
# its tests `syno_NAME_tests` from the *_test.cpp beside the sources. The tests may use the layers of TEST_DEPENDS, too.
# syno_library(): `syno` (alias syno::syno), all layers in one library, which is what gets installed.
set(SYNO_LAYERS "" CACHE INTERNAL "The layers that exist, lowest first")

function(syno_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;TEST_DEPENDS")
  set(folder "${PROJECT_SOURCE_DIR}/src/syno/${name}")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${folder}/*.h")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")

  set(target syno_${name})
  if(sources)
    add_library(${target} STATIC ${sources} ${headers})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:syno_flags>)
  else() # headers alone
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} ${scope} Threads::Threads)
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(${target} ${scope} syno_${dependency})
  endforeach()
  set(SYNO_LAYERS ${SYNO_LAYERS} ${name} CACHE INTERNAL "")

  if(SYNO_BUILD_TESTS AND tests)
    list(TRANSFORM arg_TEST_DEPENDS PREPEND syno_ OUTPUT_VARIABLE test_libraries)
    syno_test(${target}_tests LABEL ${name} SOURCES ${tests} LIBRARIES ${target} ${test_libraries})
  endif()
endfunction()

function(syno_library)
  set(objects "")
  foreach(name IN LISTS SYNO_LAYERS)
    get_target_property(type syno_${name} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:syno_${name}>)
    endif()
  endforeach()
  add_library(syno ${objects})
  add_library(syno::syno ALIAS syno)
  set_target_properties(syno PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(syno PUBLIC cxx_std_20)
  target_include_directories(syno PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                         $<INSTALL_INTERFACE:include>)
  target_link_libraries(syno PUBLIC Threads::Threads PRIVATE $<BUILD_INTERFACE:syno_flags>)
endfunction()
