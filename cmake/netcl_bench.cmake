# Benchmarks: bench/<name>.cpp -> <build>/bin/bench_<name>. Google Benchmark is linked without its main.
file(GLOB netcl_bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
if(netcl_bench_sources)
  find_package(benchmark REQUIRED)
  foreach(source IN LISTS netcl_bench_sources)
    get_filename_component(name "${source}" NAME_WE)
    string(REGEX REPLACE "^bench_|_bench$" "" name "${name}")
    netcl_executable(bench_${name} INTERNAL SOURCES "${source}" LIBRARIES benchmark::benchmark)
  endforeach()
endif()

# Contenders of `netcl bench`: bench/peers/<name>_peer.cpp -> <build>/bin/bench_peer_<name>, where the library is
# installed (`make bench` installs it).
function(netcl_bench_peer name header library)
  find_path(NETCL_PEER_${name}_HEADER ${header} PATH_SUFFIXES openblas-pthread)
  find_library(NETCL_PEER_${name}_LIBRARY ${library} PATH_SUFFIXES openblas-pthread)
  if(NETCL_PEER_${name}_HEADER AND NETCL_PEER_${name}_LIBRARY)
    netcl_executable(bench_peer_${name} INTERNAL SOURCES "${PROJECT_SOURCE_DIR}/bench/peers/${name}_peer.cpp"
      LIBRARIES "${NETCL_PEER_${name}_LIBRARY}")
    target_include_directories(bench_peer_${name} SYSTEM PRIVATE "${NETCL_PEER_${name}_HEADER}")
  endif()
endfunction()
netcl_bench_peer(onednn oneapi/dnnl/dnnl.hpp dnnl)
netcl_bench_peer(openblas cblas.h openblas)
if(NETCL_OPENCL)
  netcl_bench_peer(clblast clblast_c.h clblast)
endif()
