// Kernels on drivers that do not compile the longest vectors: the lengths they ask for, and, as
// the test ops.short_vectors behind a layer that claims to be such a driver, their results.
#include "ops/vector_lanes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "netcl/selftest.h"
#include "ops/elementwise/program.h"
#include "ops/softmax/rows.h"
#include "support/devices.h"
#include "support/recorded_devices.h"

namespace netcl {
namespace {

using test::recorded_profile;

TEST(VectorLanes, FollowWhatTheDriverCompiles) {
  const auto all = recorded_profile("pocl_epyc"), half = recorded_profile("pocl_3_0_epyc");
  EXPECT_EQ(vector_lanes(all, 16, DType::float32), 16);
  EXPECT_EQ(vector_lanes(all, 16, DType::float64), 16);
  EXPECT_EQ(vector_lanes(half, 16, DType::float32), 8);
  EXPECT_EQ(vector_lanes(half, 4, DType::float32), 4);
  EXPECT_EQ(vector_lanes(half, 8, DType::float64), 4);
  EXPECT_EQ(vector_lanes(half, 16, DType::float16), 16);
}

TEST(VectorLanes, OfElementsFitTheWidestOperand) {
  const auto all = recorded_profile("pocl_epyc"), half = recorded_profile("pocl_3_0_epyc");
  const auto host = manager().default_device("cpu").queue;
  const auto lanes = [&](const ExtendedDeviceProfile& profile, DType input, DType output) {
    ElementArgs args;
    args.inputs = {Tensor(), Tensor::full(host, {2}, 1, input)};
    args.outputs = {Tensor::full(host, {2}, 1, output)};
    EXPECT_EQ(walking_shape(args, DType::float32, 16, profile).vec,
              element_lanes(args, DType::float32, 16, profile));
    return element_lanes(args, DType::float32, 16, profile);
  };
  EXPECT_EQ(lanes(all, DType::int64, DType::float64), 16);
  EXPECT_EQ(lanes(half, DType::float32, DType::boolean), 8);
  EXPECT_EQ(lanes(half, DType::int64, DType::float32), 4);
  EXPECT_EQ(lanes(half, DType::float32, DType::float64), 4);
}

TEST(VectorLanes, RowsHaveNoLongerOnes) {
  const auto vec = [](const char* device, DType dtype) {
    std::smatch found;
    const auto text = row_macros(dtype, recorded_profile(device));
    EXPECT_TRUE(std::regex_search(text, found, std::regex("#define ACCV (\\w+)")));
    EXPECT_NE(text.find("#define VEC " + std::to_string(dtype == DType::float64 ? 4 : 8)) !=
                  std::string::npos,
              std::string(device) == "pocl_epyc");
    return found[1].str();
  };
  EXPECT_EQ(vec("pocl_epyc", DType::float32), "float16");
  EXPECT_EQ(vec("pocl_epyc", DType::float64), "double8");
  EXPECT_EQ(vec("pocl_3_0_epyc", DType::float32), "float8");
  EXPECT_EQ(vec("pocl_3_0_epyc", DType::float16), "float8");
  EXPECT_EQ(vec("pocl_3_0_epyc", DType::float64), "double4");
}

// A long vector that is written out would not follow the driver. Elements of one may be read.
TEST(VectorLanes, KernelsDoNotWriteLongOnesOut) {
  const std::filesystem::path sources(NETCL_SOURCE_DIR);
  const std::regex whole("v(load|store)(8|16)\\(");
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(sources)) {
    if (entry.path().extension() != ".cl") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (std::regex_search(text, whole))
      found.push_back(std::filesystem::relative(entry.path(), sources).string());
  }
  EXPECT_EQ(found, std::vector<std::string>{"optim/multi_tensor.cl"});  // loads, then elements
}

// Behind the layer the kernels have short vectors, elsewhere those of the device.
TEST(VectorLanes, KernelsAreRight) {
  const bool is_short = std::getenv("CPU_LAYER_DRIVER_VERSION") != nullptr;
  for (const auto& handle : test::opencl_devices()) {
    const auto& profile = device_profile(handle.queue);
    if (!profile.is_cpu) continue;
    if (is_short && profile.platform_name == "Portable Computing Language")
      EXPECT_EQ(detail::max_vector_bytes(profile), 32);
    SelftestOptions options;
    options.filter =
        "exp/*,where/*,sum/*,max/*,softmax/*,log_softmax_backward/*,cross_entropy/*,layer_norm/*,"
        "batch_norm/*,attention/*,matmul/*,conv2d/*,conv2d_backward_weights/*";
    options.quick = true;
    options.stride = 32;
    const auto report = selftest(handle.queue, options);
    for (const auto& failure : report.failures)
      ADD_FAILURE() << failure.id << ": " << failure.message;
    EXPECT_GT(report.total.run, 0u);
  }
}

}  // namespace
}  // namespace netcl
