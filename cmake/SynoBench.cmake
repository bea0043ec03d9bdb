# bench/*.cpp -> syno_bench. Build it as Release; numbers from a debug build mean nothing.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
if(sources)
  find_package(benchmark REQUIRED)
  add_executable(syno_bench EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(syno_bench PRIVATE syno::syno syno_flags benchmark::benchmark_main syno_source_dir)
endif()
