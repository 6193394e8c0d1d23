// Kernels with known mistakes: what checks kernels must report these, and not the one without.
//   planted_kernels clean | race | local_race | out_of_bounds | uninitialized
#include <cstdio>
#include <map>

#include "netcl/netcl.h"

namespace {

constexpr int kItems = 64;

const std::map<std::string, std::string>& bodies() {
  static const std::map<std::string, std::string> all{
      {"clean",
       "t[l] = x[i]; barrier(CLK_LOCAL_MEM_FENCE); y[i] = t[(l + 1) % get_local_size(0)];"},
      {"race", "y[0] = x[i] + i;"},
      {"local_race", "t[l] = x[i]; y[i] = t[(l + 1) % get_local_size(0)];"},
      {"out_of_bounds", "y[i] = x[i] + x[i + (1 << 20)];"},
      {"uninitialized", "y[i] = t[l];"}};
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace netcl;
  const auto found = argc == 2 ? bodies().find(argv[1]) : bodies().end();
  if (found == bodies().end()) {
    std::fprintf(stderr, "planted_kernels clean|race|local_race|out_of_bounds|uninitialized\n");
    return 2;
  }
  const auto queue = manager().default_device("opencl").queue;
  const KernelSpec spec{
      .name = "planted",
      .src =
          "__kernel void planted(__global const float* x, __global float* y, __local float* t) {\n"
          "  const int i = get_global_id(0), l = get_local_id(0);\n  " +
          found->second + "\n}\n",
      .workgroup_size = 16,
      .tune = false};
  const std::vector<float> ones(kItems, 1.0f);
  const auto x = Tensor::from_host(queue, HostView(ones));
  const auto y = Tensor::from_host(queue, HostView(ones));
  spec.build(queue).run(queue, kItems, 16, x, y, KernelArg::local(16 * sizeof(float)));
  queue.finish();
  return 0;
}
