# The command-line tool: tools/netcl/*.cpp -> <build>/bin/netcl. It sees the public headers only.
file(GLOB netcl_cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/netcl/*.cpp")
if(netcl_cli_sources)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(fmt REQUIRED)
  netcl_executable(netcl_cli OUTPUT_NAME netcl SOURCES ${netcl_cli_sources}
    LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt-header-only)
  # Half of a fresh build's time of these files is optimising what reads the command line.
  target_compile_options(netcl_cli PRIVATE -O1)
  target_include_directories(netcl_cli PRIVATE "${PROJECT_SOURCE_DIR}/tools/netcl")
endif()
