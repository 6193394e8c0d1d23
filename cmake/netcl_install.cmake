# Install rules and the package that find_package(netcl) finds.
include(CMakePackageConfigHelpers)
set(netcl_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/netcl")

install(TARGETS netcl EXPORT netclTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/netcl" "${PROJECT_BINARY_DIR}/generated/include/netcl"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
if(TARGET netcl_cli)
  install(TARGETS netcl_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

install(EXPORT netclTargets NAMESPACE netcl:: DESTINATION "${netcl_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/netclConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/generated/netclConfig.cmake" INSTALL_DESTINATION "${netcl_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/netclConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/generated/netclConfig.cmake"
  "${PROJECT_BINARY_DIR}/generated/netclConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/netcl_file_libraries.cmake" DESTINATION "${netcl_package_dir}")
