// What the tests of tuning share: a device, a store of their own, and the documents' kernels.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "netcl/autotuner.h"
#include "netcl/device.h"
#include "netcl/tensor.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"
#include "tune/measure.h"
#include "tune/results.h"

namespace netcl::test {

// The default store is read from the environment once: it must never be the user's own. A child
// process takes the file that its parent gives it in the environment.
inline void use_own_store() {
  static const TempDir directory;  // outlives the saving at exit, which was registered later
  const bool is_given = child_role() && std::getenv("NETCL_TUNING_FILE") != nullptr;
  const auto path =
      is_given ? std::string(std::getenv("NETCL_TUNING_FILE")) : directory / "default.json";
  const ScopedEnv file("NETCL_TUNING_FILE", path.c_str());
  default_tuning_store();
}

class TuneTest : public testing::Test {
 protected:
  void SetUp() override {
    use_own_store();
    NETCL_NEED_OPENCL();
    queue = opencl_devices().front().queue;
    if (child_role()) return;
    default_tuning_store().clear();
    tune::raise_results_generation();  // programs of earlier tests live on in the context
  }

  Tensor ramp(std::int64_t count, DType dtype = DType::float32) const {
    return Tensor::arange(queue, 0, static_cast<double>(count), 1, dtype);
  }

  Queue queue;
};

inline KernelSpec scale_by_two() {
  return {.name = "scale_by_two", .src = R"(__kernel void scale_by_two(__global float* x) {
                      int gid = get_global_id(0);
                      x[gid] *= 2.0f;
                    })"};
}

inline KernelSpec matmul(const std::string& name) {
  KernelSpec spec{.name = name};
  spec.src = "__kernel void " + name + R"((
      __global const float* a, __global const float* b, __global float* c, int M, int N, int K) {
    const int row = get_global_id(0), column = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += a[row * K + k] * b[k * N + column];
    c[row * N + column] = sum;
  })";
  return spec;
}

// A result that depends on the work-group size, and is quickest where it is wrong.
inline KernelSpec wrong_unless_sixty_four() {
  return {.name = "wrong_unless_sixty_four",
          .src = R"(__kernel void wrong_unless_sixty_four(__global float* y) {
                      const int i = get_global_id(0);
                      if (get_local_size(0) != 64) { y[i] = -1.0f; return; }
                      float sum = 0.0f;
                      for (int k = 0; k < 2000; ++k) sum += sqrt((float)(i + k));
                      y[i] = sum;
                    })"};
}

inline std::vector<float> doubled(std::int64_t count, int times = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  for (auto& value : values) value *= static_cast<float>(1 << times);
  return values;
}

}  // namespace netcl::test
