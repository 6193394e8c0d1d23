#include <gtest/gtest.h>

#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl {
namespace {

std::unique_ptr<DeviceBackend> backend_of(const Queue& queue) {
  if (queue.is_cpu()) return std::make_unique<CPUBackend>(queue);
  return std::make_unique<OpenCLBackend>(queue);
}

TEST(Backend, OneInterface) {
  test::on_every_device([](const Queue& queue) {
    const auto backend = backend_of(queue);
    EXPECT_EQ(backend->is_opencl(), !queue.is_cpu());
    const std::vector<float> values = {1, 2, 3, 4};
    const auto array = backend->from_host(values, DType::float32);
    const auto same = backend->reshape(array, {4}, {2, 2});
    EXPECT_EQ(same, array);
    const auto back = backend->to_host(same, {2, 2}, DType::float32);
    EXPECT_EQ(back.at(3), 4);
    EXPECT_EQ(backend->to_host(backend->from_shape({3}, DType::int64), {3}, DType::int64).at(2), 0);
    auto later = backend->to_host_async(array, {4}, DType::float32);
    backend->wait();
    EXPECT_TRUE(later.event().is_complete());
    EXPECT_EQ(later.wait().at(0), 1);
    // Converts on the way in.
    EXPECT_EQ(backend->to_host(backend->from_host(values, DType::int8), {4}, DType::int8).at(2), 3);
  });
}

TEST(Backend, SizesAreChecked) {
  test::on_every_device([](const Queue& queue) {
    const auto backend = backend_of(queue);
    const auto array = backend->from_shape({4}, DType::float32);
    EXPECT_THROW(backend->reshape(array, {4}, {5, 5}), ShapeError);
    EXPECT_THROW(backend->to_host(array, {300, 300}, DType::float32), ShapeError);
    EXPECT_THROW(backend->to_host(nullptr, {1}, DType::float32), ArgumentError);
  });
}

TEST(Backend, WrongQueues) {
  EXPECT_THROW(OpenCLBackend{Queue()}, DeviceError);
  EXPECT_THROW(OpenCLBackend{CPUQueue()}, DeviceError);
  NETCL_NEED_OPENCL();
  EXPECT_THROW(CPUBackend{manager().default_device("opencl").queue}, DeviceError);
}

}  // namespace
}  // namespace netcl
