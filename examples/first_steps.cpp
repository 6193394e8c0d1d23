// First steps: find the best device, put numbers on it, compute with them, look at the result.
// Runs anywhere: without an OpenCL device the CPU backend does the same.
#include <cstdio>

#include "netcl/netcl.h"

int main() {
  const auto device = netcl::manager().default_device("auto");
  std::printf("computing on %s (%s)\n\n", device.device_name.c_str(),
              device.backend == "cl" ? device.platform_name.c_str() : "CPU backend");

  // A million normal numbers: the same bits for the same seed on every device.
  const auto x =
      netcl::Tensor::random(device.queue, {1000, 1000}, /*seed=*/2024, netcl::Distribution::normal);
  std::printf("a corner of x:\n%s\n\n", x.narrow(0, 0, 3).narrow(1, 0, 4).to_string().c_str());

  // Views share memory; contiguous() and astype() are done by kernels on the device.
  const auto y = x.transpose().astype(netcl::DType::float16);
  std::printf("the same corner, transposed, as float16:\n%s\n\n",
              y.narrow(0, 0, 4).narrow(1, 0, 3).to_string().c_str());

  double sum = 0, squares = 0;
  for (const double value : y.to_vector<double>()) {
    sum += value;
    squares += value * value;
  }
  std::printf("mean %.4f, variance %.4f of %lld values\n", sum / 1e6, squares / 1e6,
              static_cast<long long>(y.numel()));

  if (device.backend == "cl") {
    // A kernel of our own. The first run measures work-group sizes and keeps the best.
    const netcl::KernelSpec spec{
        .name = "smooth_relu",
        .params = {"__global const float* in", "__global float* out"},
        .body = "const int i = get_global_id(0); out[i] = LOG(ADD(1.0f, EXP(in[i])));"};
    const auto out = netcl::Tensor::empty(device.queue, x.shape());
    spec.build(device.queue).run(device.queue, x.numel(), nullptr, x, out);
    std::printf("\nlog(1 + exp(x)) by a kernel of our own:\n%s\n",
                out.narrow(0, 0, 3).narrow(1, 0, 4).to_string().c_str());
  }
  const bool right = sum / 1e6 < 0.01 && squares / 1e6 > 0.98 && squares / 1e6 < 1.02;
  return right ? 0 : 1;
}
