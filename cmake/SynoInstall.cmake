# cmake --install: the library, its headers and the package for find_package(syno).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
if(TARGET syno)
  set(destination "${CMAKE_INSTALL_LIBDIR}/cmake/syno")
  install(TARGETS syno EXPORT syno-targets)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/syno" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
          FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE)
  install(EXPORT syno-targets NAMESPACE syno:: DESTINATION "${destination}")
  configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/syno-config.cmake.in"
                                "${PROJECT_BINARY_DIR}/syno-config.cmake" INSTALL_DESTINATION "${destination}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/syno-config-version.cmake"
                                   COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/syno-config.cmake" "${PROJECT_BINARY_DIR}/syno-config-version.cmake"
          DESTINATION "${destination}")
endif()
