# The command-line tool: tools/netcl/*.cpp -> <build>/bin/netcl. It sees the public headers only.
file(GLOB netcl_cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/netcl/*.cpp")
if(netcl_cli_sources)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(fmt REQUIRED)
  netcl_executable(netcl_cli OUTPUT_NAME netcl SOURCES ${netcl_cli_sources}
    LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt-header-only)
  # Most of the time of these files goes into CLI11, the same in each: a few of them together, and
  # little optimisation of what only reads the command line.
  set_target_properties(netcl_cli PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  target_compile_options(netcl_cli PRIVATE -O1)
  target_include_directories(netcl_cli PRIVATE "${PROJECT_SOURCE_DIR}/tools/netcl")
endif()
