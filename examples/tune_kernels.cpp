// Tuning ahead: find the best work-group sizes once, keep them in a file, use them everywhere.
#include <cstdio>
#include <filesystem>

#include "netcl/netcl.h"

int main() {
  const auto device = netcl::manager().find_device("opencl");
  if (!device) {
    std::puts("tuning needs an OpenCL device, and there is none");
    return 0;
  }
  const auto& queue = device->queue;
  const netcl::KernelSpec spec{
      .name = "saxpy",
      .params = {"__global const float* x", "__global float* y", "float a", "int n"},
      .body =
          "const int i = get_global_id(0);\n"
          "if (i < n) y[i] += a * x[i];",
      .guards_range = true};
  const auto saxpy = spec.build(queue).kernel();
  const auto x = netcl::Tensor::full(queue, {100000}, 1.0);
  const auto y = netcl::Tensor::full(queue, {100000}, 2.0);

  // Every candidate is measured on scratch copies: y does not change.
  netcl::Autotuner autotuner(queue);
  autotuner.add("saxpy", saxpy, x.size(), {x, y, 3.0F, x.size()});
  autotuner.tune_all(queue);
  const auto result = *autotuner.result("saxpy", x.size());
  for (const auto& candidate : result.candidates)
    std::printf("%-10s %9.1f us  %s\n", candidate.local_size.to_string().c_str(),
                candidate.runtime_us, candidate.note.c_str());
  std::printf("best: %s, %.1f us; without tuning %.1f us\n",
              autotuner.lookup("saxpy", x.size()).to_string().c_str(), result.runtime_us,
              result.default_us);

  // For other machines with this device and driver.
  const auto path = std::filesystem::temp_directory_path() / "netcl_tune_kernels_example.json";
  autotuner.save(path.string());
  netcl::Autotuner restored(queue);
  restored.load(path.string());
  std::filesystem::remove(path);

  // A launch without a local size uses the result; nothing is measured here.
  saxpy(queue, x.size(), nullptr, x, y, 3.0F, x.size());
  const double sum = y.to_vector<float>()[99999];
  std::printf("2 + 3 * 1 = %g\n", sum);
  return sum == 5 && restored.results().size() == 1 ? 0 : 1;
}
