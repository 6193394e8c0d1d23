# The library target, its private dependencies and the flags of our own code.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
include(netcl_file_libraries)

# Compiler flags of our own targets; never seen by a consumer.
add_library(netcl_flags INTERFACE)
target_compile_features(netcl_flags INTERFACE cxx_std_20)
target_compile_options(netcl_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi
  -Wcast-qual -Wformat=2 -Wimplicit-fallthrough -Wunused -Wvla
  # Members left out of an aggregate get their defaults; that is what the defaults are for.
  -Wno-missing-field-initializers
  # g++ 12 reports std::string concatenation as overlapping memcpy (GCC bug 105329).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${NETCL_WERROR}>:-Werror>)
if(NETCL_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Instrumented code defeats the analysis behind these two and makes them report what is not there.
  target_compile_options(netcl_flags INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow)
endif()

# What code under src/ (and tests and benchmarks, which may look inside) needs to compile.
add_library(netcl_internal INTERFACE)
target_include_directories(netcl_internal INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(netcl_internal INTERFACE nlohmann_json::nlohmann_json ${netcl_file_libraries})

# oneDNN, for the CPU backend: its headers at build time, the library opened at run time where there is one.
find_path(NETCL_ONEDNN_HEADERS oneapi/dnnl/dnnl.h)
if(NOT NETCL_ONEDNN_HEADERS)
  message(FATAL_ERROR "netcl: oneapi/dnnl/dnnl.h not found. Install oneDNN's headers (Debian: apt-get install libdnnl-dev).")
endif()
target_include_directories(netcl_internal SYSTEM INTERFACE "${NETCL_ONEDNN_HEADERS}")

# OpenCL or not is a choice of files: src/cl/opencl*.cpp need the headers, src/cl/stub*.cpp replace them.
file(GLOB_RECURSE netcl_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cpp")
if(NETCL_OPENCL)
  list(FILTER netcl_sources EXCLUDE REGEX "/src/cl/stub[^/]*\\.cpp$")
  find_path(NETCL_OPENCL_HEADERS CL/cl.h)
  if(NOT NETCL_OPENCL_HEADERS)
    message(FATAL_ERROR "netcl: CL/cl.h not found. Install the OpenCL C headers (Debian: apt-get install "
      "opencl-c-headers), or configure with -DNETCL_OPENCL=OFF for the CPU backend alone.")
  endif()
  target_include_directories(netcl_internal SYSTEM INTERFACE "${NETCL_OPENCL_HEADERS}")
  # Drivers of OpenCL 1.2 know only the calls that later versions call deprecated.
  target_compile_definitions(netcl_internal INTERFACE
    CL_TARGET_OPENCL_VERSION=300 CL_USE_DEPRECATED_OPENCL_1_2_APIS)
else()
  list(FILTER netcl_sources EXCLUDE REGEX "/src/cl/opencl[^/]*\\.cpp$")
  # Headers that happen to be installed must not hide that this build needs them.
  set(netcl_no_opencl "${PROJECT_BINARY_DIR}/no-opencl")
  foreach(header cl.h opencl.h opencl.hpp cl_ext.h)
    file(CONFIGURE OUTPUT "${netcl_no_opencl}/CL/${header}"
      CONTENT "#error \"NETCL_OPENCL=OFF: only src/cl/opencl*.cpp may need the OpenCL headers\"\n")
  endforeach()
  target_include_directories(netcl_internal BEFORE INTERFACE "${netcl_no_opencl}")
endif()

# Kernels: every src/**/*.cl goes into one generated file behind src/kernel/embedded.h.
file(GLOB_RECURSE netcl_kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cl")
set(netcl_kernel_table "${PROJECT_BINARY_DIR}/generated/embedded_kernels.cpp")
# The list itself is a dependency, so that a removed kernel also regenerates the table.
set(netcl_kernel_list "${PROJECT_BINARY_DIR}/generated/kernels.txt")
list(JOIN netcl_kernels "\n" netcl_kernel_lines)
file(CONFIGURE OUTPUT "${netcl_kernel_list}" CONTENT "${netcl_kernel_lines}\n" @ONLY)
add_custom_command(
  OUTPUT "${netcl_kernel_table}"
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}/src" "-DLIST=${netcl_kernel_list}"
    "-DOUTPUT=${netcl_kernel_table}" -P "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake"
  DEPENDS ${netcl_kernels} "${netcl_kernel_list}" "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake"
  COMMENT "Embedding OpenCL kernels"
  VERBATIM)

# Ops: every folder src/ops/<name>/ defines `std::vector<OpDef> ops_of_<name>()`; the list of them is generated.
file(GLOB netcl_op_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${PROJECT_SOURCE_DIR}/src/ops"
  "${PROJECT_SOURCE_DIR}/src/ops/*")
set(netcl_op_declarations "")
set(netcl_op_calls "")
foreach(folder IN LISTS netcl_op_folders)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/src/ops/${folder}")
    string(APPEND netcl_op_declarations "std::vector<OpDef> ops_of_${folder}();\n")
    string(APPEND netcl_op_calls "  append(ops_of_${folder}());\n")
  endif()
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/cmake/op_table.cpp.in" "${PROJECT_BINARY_DIR}/generated/op_table.cpp" @ONLY)

configure_file("${PROJECT_SOURCE_DIR}/include/netcl/version.h.in"
  "${PROJECT_BINARY_DIR}/generated/include/netcl/version.h" @ONLY)

add_library(netcl STATIC ${netcl_sources} "${netcl_kernel_table}" "${PROJECT_BINARY_DIR}/generated/op_table.cpp")
add_library(netcl::netcl ALIAS netcl)
set_target_properties(netcl PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_features(netcl PUBLIC cxx_std_20)
# No contraction of a*b+c into one FMA: results must not depend on what the host's compiler chose to fuse,
# because the CPU backend and the references are compared bit for bit across machines.
target_compile_options(netcl PRIVATE -ffp-contract=off)
# Loops that are there for the processor's vectors: -O3 makes them, and nobody reads floating point flags. Built
# for several instruction sets, of which one is taken at run time.
foreach(set baseline avx2 avx512)
  set(netcl_loop_flags -fno-math-errno -fno-trapping-math $<$<CONFIG:Release>:-O3>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    if(set STREQUAL "avx2")
      list(APPEND netcl_loop_flags -mavx2 -mbmi2)
    elseif(set STREQUAL "avx512")
      list(APPEND netcl_loop_flags -mavx2 -mbmi2 -mavx512f -mavx512bw -mavx512dq -mavx512vl)
    endif()
  endif()
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/ops/softmax/row_math_${set}.cpp" PROPERTIES
    COMPILE_OPTIONS "${netcl_loop_flags}")
endforeach()
# The loops of the element-wise ops, for the processors that everybody has.
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/ops/elementwise/table.cpp" PROPERTIES
  COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math;$<$<CONFIG:Release>:-O3>")
target_include_directories(netcl PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
# OpenCL is opened with dlopen at run time, so libOpenCL is never linked. BUILD_INTERFACE keeps the header-only
# dependencies out of the installed package: a consumer needs none of them.
target_link_libraries(netcl PRIVATE $<BUILD_INTERFACE:netcl_flags> $<BUILD_INTERFACE:netcl_internal>
  Threads::Threads ${CMAKE_DL_LIBS} OpenMP::OpenMP_CXX ${netcl_file_libraries})

# An executable of this project in <build>/bin. internal: may include headers from src/.
function(netcl_executable target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL" "OUTPUT_NAME" "SOURCES;LIBRARIES")
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if(arg_OUTPUT_NAME)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME "${arg_OUTPUT_NAME}")
  endif()
  target_link_libraries(${target} PRIVATE netcl::netcl netcl_flags ${arg_LIBRARIES})
  if(arg_INTERNAL)
    target_link_libraries(${target} PRIVATE netcl_internal)
  endif()
endfunction()
