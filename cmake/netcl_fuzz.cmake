# tests/fuzz/<name>_fuzz.cpp -> <build>/bin/fuzz_<name> with libFuzzer. The tests replay the same targets without it
# (netcl_tests.cmake).
file(GLOB netcl_fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
foreach(source IN LISTS netcl_fuzz_sources)
  get_filename_component(name "${source}" NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name "${name}")
  netcl_executable(fuzz_${name} INTERNAL SOURCES "${source}" LIBRARIES fmt::fmt-header-only)
  target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(fuzz_${name} PRIVATE FUZZ_WITH_LIBFUZZER)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endforeach()
