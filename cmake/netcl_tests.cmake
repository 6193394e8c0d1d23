# Tests. tests/<layer>/*_test.cpp -> <build>/bin/<layer>_test, one CTest test per executable (a process that opens
# OpenCL costs about 0.1 s to start, so cases are not registered one by one) and again per OpenCL situation:
#   <layer>              the machine's own OpenCL drivers
#   <layer>.no_driver    no driver at all: the CPU backend has to carry everything
#   <layer>.two_devices  two OpenCL devices in one process (PoCL)
# tests/support/*.cpp is linked into all of them. tests/scripts/*.sh -> script.<name>; examples/*.cpp -> example.<name>.
find_package(GTest REQUIRED)

set(netcl_empty_vendors "${PROJECT_BINARY_DIR}/empty-icd-vendors")
file(MAKE_DIRECTORY "${netcl_empty_vendors}" "${PROJECT_BINARY_DIR}/test-cache")

# Tests never touch the user's caches, and sanitizers do not report what drivers leave behind.
set(netcl_test_env "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test-cache")
set(netcl_test_timeout 300)
if(NETCL_SANITIZE)
  # Everything is several times slower there; the self-test has the same code with other numbers in most of its cases.
  set(netcl_test_timeout 1800)
  # LeakSanitizer of LLVM 14 dies with signal 11 in dynamic thread-local memory that it has taken notes of.
  set(netcl_asan_options "intercept_tls_get_addr=0")
  list(APPEND netcl_test_env "NETCL_SELFTEST_STRIDE=32" "ASAN_OPTIONS=${netcl_asan_options}"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp:ignore_noninstrumented_modules=1"
    "UBSAN_OPTIONS=print_stacktrace=1")
endif()

# netcl_add_test(<name> COMMAND <command...> [ENV <NAME=value...>] [LABELS <label...>])
function(netcl_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;ENV;LABELS")
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_BINARY_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${netcl_test_timeout} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
    ENVIRONMENT "${netcl_test_env};${arg_ENV}")
endfunction()

file(GLOB netcl_support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
add_library(netcl_test_support INTERFACE)
target_include_directories(netcl_test_support INTERFACE "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(netcl_test_support INTERFACE GTest::gtest)
# GoogleTest's macros hide an if-else, which g++ reports in `if (x) EXPECT_EQ(...)`.
target_compile_options(netcl_test_support INTERFACE -Wno-dangling-else)
# Where a test finds the CLI of this build (to start it as a child), the sources and the datasets.
target_compile_definitions(netcl_test_support INTERFACE
  "NETCL_BIN_DIR=\"${PROJECT_BINARY_DIR}/bin\"" "NETCL_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}/src\""
  "NETCL_DATA_DIR=\"${PROJECT_SOURCE_DIR}/data\"")
if(netcl_support_sources)
  add_library(netcl_test_support_objects STATIC ${netcl_support_sources})
  target_link_libraries(netcl_test_support_objects PRIVATE netcl::netcl netcl_flags netcl_internal)
  target_link_libraries(netcl_test_support_objects PUBLIC netcl_test_support)
  set(netcl_test_libraries netcl_test_support_objects)
else()
  set(netcl_test_libraries netcl_test_support)
endif()

set(netcl_two_device_layers device memory kernel tune tensor)

file(GLOB_RECURSE netcl_test_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*.cpp")
file(GLOB netcl_test_dirs LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/tests/*")
foreach(dir IN LISTS netcl_test_dirs)
  get_filename_component(layer "${dir}" NAME)
  set(sources ${netcl_test_sources})
  list(FILTER sources INCLUDE REGEX "/tests/${layer}/")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  if(NOT tests)
    continue()
  endif()
  # A layer that needs its own main (child processes, signal tests) brings tests/<layer>/main.cpp.
  set(main GTest::gtest_main)
  if(EXISTS "${dir}/main.cpp")
    set(main GTest::gtest)
  endif()
  netcl_executable(${layer}_test INTERNAL SOURCES ${sources} LIBRARIES ${netcl_test_libraries} ${main})
  # What is tested is the library; optimising the tests themselves only makes a fresh build longer.
  target_compile_options(${layer}_test PRIVATE -O0)
  if(TARGET netcl_cli)
    add_dependencies(${layer}_test netcl_cli)
  endif()
  # Tests of how much memory is held: freed memory is not kept from use for the sake of finding late accesses.
  set(layer_env "")
  if(NETCL_SANITIZE AND layer STREQUAL "optim")
    set(layer_env "ASAN_OPTIONS=${netcl_asan_options}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0")
  endif()
  set(layer_arguments "")
  if(layer STREQUAL "ops")
    set(layer_arguments "--gtest_filter=-Selftest.*")
  endif()
  netcl_add_test(${layer} COMMAND ${layer}_test ${layer_arguments} LABELS unit ENV ${layer_env})
  # The self-test of all ops is long where kernels have to be compiled: two processes share it.
  if(layer STREQUAL "ops")
    foreach(part 0 1)
      netcl_add_test(ops.selftest.${part} COMMAND ops_test "--gtest_filter=Selftest.*" LABELS unit
        ENV NETCL_SELFTEST_PART=${part} ${layer_env})
      set_tests_properties(ops.selftest.${part} PROPERTIES TIMEOUT 2400 COST 1000)
    endforeach()
  endif()
  if(NETCL_OPENCL AND NOT layer STREQUAL "base")
    netcl_add_test(${layer}.no_driver COMMAND ${layer}_test LABELS unit no_driver
      ENV "OCL_ICD_VENDORS=${netcl_empty_vendors}" ${layer_env})
    if(layer IN_LIST netcl_two_device_layers)
      # All pairs of dtypes are 81 kernels to compile, and nothing of them is about two devices.
      netcl_add_test(${layer}.two_devices COMMAND ${layer}_test "--gtest_filter=-Cast.EveryPair*"
        LABELS unit two_devices
        ENV "POCL_DEVICES=pthread basic" ${layer_env})
      # After the plain run, whose compiled kernels it then finds in the cache.
      set_tests_properties(${layer}.two_devices PROPERTIES DEPENDS ${layer})
    endif()
  endif()
endforeach()

# An OpenCL layer that fails calls, and the test that runs behind it.
if(NETCL_OPENCL)
  add_library(netcl_fault_layer SHARED "${PROJECT_SOURCE_DIR}/tests/fault_layer/fault_layer.cpp")
  target_include_directories(netcl_fault_layer PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(netcl_fault_layer PRIVATE netcl_flags netcl_internal)
  add_dependencies(faults_test netcl_fault_layer)
  set_tests_properties(faults PROPERTIES
    ENVIRONMENT "${netcl_test_env};OPENCL_LAYERS=$<TARGET_FILE:netcl_fault_layer>")

  # A layer under which Oclgrind's device is a CPU (scripts/oclgrind.py).
  add_library(netcl_cpu_layer SHARED "${PROJECT_SOURCE_DIR}/tests/cpu_layer/cpu_layer.cpp")
  target_link_libraries(netcl_cpu_layer PRIVATE netcl_flags netcl_internal)
  # The same layer, for PoCL: a release that does not compile the longest vectors (docs/devices.md).
  add_dependencies(ops_test netcl_cpu_layer)
  netcl_add_test(ops.short_vectors COMMAND ops_test "--gtest_filter=VectorLanes.*" LABELS unit
    ENV "OPENCL_LAYERS=$<TARGET_FILE:netcl_cpu_layer>" CPU_LAYER_VENDOR=AuthenticAMD CPU_LAYER_DRIVER_VERSION=3.0)

  # A layer that claims to be another device, and the program that shows what netcl launches there.
  add_library(netcl_pretend_layer SHARED EXCLUDE_FROM_ALL
    "${PROJECT_SOURCE_DIR}/tests/kernel_record/pretend_layer.cpp"
    "${PROJECT_SOURCE_DIR}/tests/kernel_record/program_text.cpp"
    "${PROJECT_SOURCE_DIR}/tests/support/recorded_devices.cpp" "${PROJECT_SOURCE_DIR}/src/base/hash.cpp")
  target_include_directories(netcl_pretend_layer PRIVATE "${PROJECT_SOURCE_DIR}/tests"
    "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(netcl_pretend_layer PRIVATE netcl_flags netcl_internal)
  netcl_executable(kernel_record INTERNAL SOURCES "${PROJECT_SOURCE_DIR}/tests/kernel_record/main.cpp"
    LIBRARIES fmt::fmt-header-only)
  target_include_directories(kernel_record PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  set_target_properties(kernel_record PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

# The fuzz targets without a fuzzer: the corpus, and some damage done to it (cmake/netcl_fuzz.cmake has the rest).
file(GLOB netcl_fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp")
netcl_executable(fuzz_replay INTERNAL SOURCES ${netcl_fuzz_sources} LIBRARIES fmt::fmt-header-only)
target_include_directories(fuzz_replay PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_compile_options(fuzz_replay PRIVATE -O0)
netcl_add_test(fuzz COMMAND fuzz_replay "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus" 2000 LABELS unit ENV OMP_NUM_THREADS=1)

file(GLOB netcl_test_scripts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/scripts/*.sh")
foreach(script IN LISTS netcl_test_scripts)
  get_filename_component(name "${script}" NAME_WE)
  netcl_add_test(script.${name} COMMAND "${script}" LABELS script
    ENV "NETCL_BIN=${PROJECT_BINARY_DIR}/bin/netcl" "NETCL_EMPTY_VENDORS=${netcl_empty_vendors}"
      "NETCL_BUILT_WITH_OPENCL=$<BOOL:${NETCL_OPENCL}>")
endforeach()

# The references of all ops against NumPy and SciPy (and PyTorch where it can be imported).
netcl_executable(reference_dump INTERNAL SOURCES "${PROJECT_SOURCE_DIR}/tests/reference_dump/main.cpp"
  LIBRARIES nlohmann_json::nlohmann_json fmt::fmt-header-only)
# Files of all formats against the packages that define them.
netcl_executable(file_convert SOURCES "${PROJECT_SOURCE_DIR}/tests/file_convert/main.cpp")
# A long run: `make soak`. Short here, on the CPU backend, where nothing has to be compiled.
netcl_executable(soak SOURCES "${PROJECT_SOURCE_DIR}/tests/soak/main.cpp")
target_include_directories(soak PRIVATE "${PROJECT_SOURCE_DIR}/tests")
netcl_add_test(soak COMMAND soak 400 cpu LABELS unit)
# Kernels with mistakes, which scripts/oclgrind.py must find.
netcl_executable(planted_kernels SOURCES "${PROJECT_SOURCE_DIR}/tests/planted_kernels/main.cpp")
# Models as ONNX files, for onnxruntime.
netcl_executable(onnx_export SOURCES "${PROJECT_SOURCE_DIR}/tests/onnx_export/main.cpp")
if(EXISTS "${netcl_python}")
  foreach(name references files onnx)
    netcl_add_test(python.${name} LABELS python
      COMMAND "${netcl_python}" -m pytest -q -p no:cacheprovider "${PROJECT_SOURCE_DIR}/tests/python/test_${name}.py"
      ENV "NETCL_REFERENCE_DUMP=$<TARGET_FILE:reference_dump>" "NETCL_FILE_CONVERT=$<TARGET_FILE:file_convert>"
        "NETCL_ONNX_EXPORT=$<TARGET_FILE:onnx_export>" "NETCL_BIN=${PROJECT_BINARY_DIR}/bin/netcl"
        PYTHONDONTWRITEBYTECODE=1)
  endforeach()
endif()

# The Python package, with the machine's OpenCL drivers, without any, and built without OpenCL. Pages and stubs are the
# same there.
if(TARGET netcl_extension)
  set(package_test "${netcl_python}" -m pytest -q -p no:cacheprovider "${PROJECT_SOURCE_DIR}/tests/python")
  if(NOT NETCL_OPENCL)
    list(APPEND package_test "--ignore=${PROJECT_SOURCE_DIR}/tests/python/test_docs.py"
      "--ignore=${PROJECT_SOURCE_DIR}/tests/python/test_types.py")
  endif()
  set(package_env "PYTHONPATH=${PROJECT_BINARY_DIR}/python" PYTHONDONTWRITEBYTECODE=1
    "NETCL_EMPTY_VENDORS=${netcl_empty_vendors}")
  netcl_add_test(python.package LABELS python COMMAND ${package_test} ENV ${package_env})
  if(NETCL_OPENCL)
    netcl_add_test(python.package.no_driver LABELS python no_driver COMMAND ${package_test}
      ENV ${package_env} "OCL_ICD_VENDORS=${netcl_empty_vendors}")
  endif()
  # Long only while the kernel cache is empty.
  set_tests_properties(python.package PROPERTIES TIMEOUT 1200 COST 900)
endif()

file(GLOB netcl_examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
foreach(source IN LISTS netcl_examples)
  get_filename_component(name "${source}" NAME_WE)
  netcl_executable(example_${name} SOURCES "${source}")
  netcl_add_test(example.${name} COMMAND example_${name} LABELS example)
endforeach()

# The installed package, used by a project that knows nothing but find_package(netcl).
if(NETCL_INSTALL)
  set(consumer_flags "")
  if(NETCL_SANITIZE)
    set(consumer_flags "-fsanitize=${NETCL_SANITIZE}")
  endif()
  netcl_add_test(consumer LABELS package COMMAND "${CMAKE_COMMAND}"
    "-DBUILD_DIR=${PROJECT_BINARY_DIR}" "-DCONSUMER_DIR=${PROJECT_SOURCE_DIR}/tests/consumer"
    "-DWORK_DIR=${PROJECT_BINARY_DIR}/consumer" "-DCOMPILER=${CMAKE_CXX_COMPILER}"
    "-DFLAGS=${consumer_flags}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
    -P "${PROJECT_SOURCE_DIR}/cmake/consumer_test.cmake")
endif()
