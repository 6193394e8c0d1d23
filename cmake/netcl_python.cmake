# The Python package: python/bindings/*.cpp -> <build>/python/netcl/_netcl.so beside links to python/netcl/*.py, so
# that PYTHONPATH=<build>/python is the package. pip builds it through pyproject.toml with these same rules.
if(NOT SKBUILD)
  set(Python_EXECUTABLE "${netcl_python}")
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB netcl_binding_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/bindings/*.cpp")
nanobind_add_module(netcl_extension NB_STATIC NB_SUPPRESS_WARNINGS ${netcl_binding_sources})
target_include_directories(netcl_extension PRIVATE "${PROJECT_SOURCE_DIR}/python/bindings")
target_link_libraries(netcl_extension PRIVATE netcl::netcl netcl_flags)
# Nothing of the library is visible to other extensions of a process, and theirs not to it.
target_link_options(netcl_extension PRIVATE LINKER:--exclude-libs,ALL)
set(netcl_package "${PROJECT_BINARY_DIR}/python/netcl")
set_target_properties(netcl_extension PROPERTIES OUTPUT_NAME _netcl LIBRARY_OUTPUT_DIRECTORY "${netcl_package}")

# Links, so that an edited module needs no build.
file(GLOB_RECURSE netcl_modules CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/netcl"
  "${PROJECT_SOURCE_DIR}/python/netcl/*.py" "${PROJECT_SOURCE_DIR}/python/netcl/py.typed")
foreach(module IN LISTS netcl_modules)
  get_filename_component(folder "${netcl_package}/${module}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/netcl/${module}" "${netcl_package}/${module}" SYMBOLIC)
endforeach()
# `python -m netcl` runs the command-line tool.
if(TARGET netcl_cli)
  file(MAKE_DIRECTORY "${netcl_package}/bin")
  file(CREATE_LINK "${PROJECT_BINARY_DIR}/bin/netcl" "${netcl_package}/bin/netcl" SYMBOLIC)
  add_dependencies(netcl_extension netcl_cli)
endif()

# Type stubs of the extension, in netcl/_netcl/ (a folder without __init__.py, which imports pass over).
nanobind_add_stub(netcl_stubs RECURSIVE INCLUDE_PRIVATE MODULE netcl._netcl
  OUTPUT_PATH "${netcl_package}" OUTPUT "${netcl_package}/_netcl/__init__.pyi"
  PYTHON_PATH "${PROJECT_BINARY_DIR}/python" DEPENDS netcl_extension)

if(SKBUILD)
  install(DIRECTORY "${netcl_package}/_netcl" DESTINATION netcl COMPONENT python FILES_MATCHING PATTERN "*.pyi")
  install(TARGETS netcl_extension LIBRARY DESTINATION netcl COMPONENT python)
  install(TARGETS netcl_cli RUNTIME DESTINATION netcl/bin COMPONENT python)
endif()
