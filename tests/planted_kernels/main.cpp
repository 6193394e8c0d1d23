// Kernels with known mistakes: what checks kernels must report these, and not the one without.
// The last three have no mistake either: their input was written by clEnqueueCopyBuffer, as a whole
// or in part, or by clEnqueueFillBuffer.
//   planted_kernels clean | race | local_race | out_of_bounds | uninitialized | copied |
//   copied_part | filled
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
      {"uninitialized", "y[i] = t[l];"},
      {"copied", "y[i] = x[i];"},
      {"copied_part", "y[i] = x[i];"},
      {"filled", "y[i] = x[i];"}};
  return all;
}

netcl::Tensor input(const netcl::Queue& queue, const std::string& kernel) {
  using namespace netcl;
  const std::vector<float> ones(kItems, 1.0f), more(3 * kItems, 0.0f);
  const auto written = Tensor::from_host(queue, HostView(ones));
  if (kernel == "copied") {
    const auto copy = Tensor::empty(queue, {kItems}, DType::float32);
    copy.copy_from(written);
    return copy;
  }
  if (kernel == "copied_part") {
    const auto copy = Tensor::from_host(queue, HostView(more)).narrow(0, kItems, kItems);
    copy.copy_from(written);
    return copy;
  }
  if (kernel == "filled") return Tensor::from_shape(queue, {kItems});
  return written;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace netcl;
  const auto found = argc == 2 ? bodies().find(argv[1]) : bodies().end();
  if (found == bodies().end()) {
    std::fprintf(
        stderr,
        "planted_kernels clean|race|local_race|out_of_bounds|uninitialized|copied|copied_part|"
        "filled\n");
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
  const auto x = input(queue, found->first);
  const auto y = Tensor::from_host(queue, HostView(ones));
  spec.build(queue).run(queue, kItems, 16, x, y, KernelArg::local(16 * sizeof(float)));
  queue.finish();
  return 0;
}
