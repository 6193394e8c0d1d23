#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "netcl/netcl.h"
#include "support/devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

using test::ScopedEnv;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return {};
}

TEST(DeviceManager, CpuIsAlwaysTheCpuBackend) {
  const auto handle = manager().default_device("cpu");
  EXPECT_EQ(handle.backend, "cpu");
  EXPECT_EQ(handle.device_type, "cpu");
  EXPECT_TRUE(handle.queue.is_cpu());
  EXPECT_FALSE(handle.context);
  EXPECT_FALSE(handle.device_name.empty());
}

TEST(DeviceManager, AutoPrefersOpenCL) {
  const ScopedEnv unset("NETCL_DEVICE", nullptr);
  const auto handle = manager().default_device();
  EXPECT_EQ(handle.backend, manager().discover().empty() ? "cpu" : "cl");
}

TEST(DeviceManager, EnvironmentReplacesAuto) {
  const ScopedEnv scope("NETCL_DEVICE", "cpu");
  EXPECT_EQ(manager().default_device("auto").backend, "cpu");
  const ScopedEnv wrong("NETCL_DEVICE", "no-such-device");
  EXPECT_NE(message_of([] { manager().default_device(); }).find("no-such-device"),
            std::string::npos);
}

TEST(DeviceManager, UnknownSelectorListsWhatThereIs) {
  EXPECT_FALSE(manager().find_device("no-such-device"));
  const auto message = message_of([] { manager().default_device("no-such-device"); });
  EXPECT_NE(message.find("no-such-device"), std::string::npos);
  EXPECT_NE(message.find("CPU backend"), std::string::npos);
  for (const auto& device : manager().discover())
    EXPECT_NE(message.find(device.device_name), std::string::npos);
}

// Asking for a GPU, or mistyping a name, must never quietly give another device.
TEST(DeviceManager, NoSilentFallback) {
  bool has_gpu = false;
  for (const auto& device : manager().discover()) has_gpu = has_gpu || device.device_type == "gpu";
  EXPECT_EQ(manager().find_device("gpu").has_value(), has_gpu);
  EXPECT_THROW(manager().default_device("gpu:99"), DeviceError);
  EXPECT_THROW(manager().default_device("opencl:99"), DeviceError);
}

TEST(DeviceManager, SelectorsOfOneDeviceShareContextAndQueue) {
  NETCL_NEED_OPENCL();
  const auto first = manager().discover().front();
  const auto by_index = manager().default_device("opencl:0");
  const auto by_name = manager().default_device(first.device_name);
  const auto by_type = manager().default_device("opencl:" + first.device_type);
  EXPECT_EQ(by_index, by_name);
  EXPECT_EQ(by_index, by_type);
  EXPECT_EQ(by_index.context, by_name.context);
  EXPECT_EQ(by_index.platform_name, first.platform_name);
}

TEST(DeviceManager, NamePartsMatchInAnyCase) {
  NETCL_NEED_OPENCL();
  const auto platform = manager().discover().front().platform_name;
  std::string upper = platform.substr(0, 5);
  for (auto& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(manager().default_device(upper).platform_name, platform);
}

TEST(DeviceManager, EveryDeviceHasItsOwnContext) {
  std::set<_cl_context*> contexts;
  const auto devices = test::opencl_devices();
  for (const auto& handle : devices) contexts.insert(handle.context.get());
  EXPECT_EQ(contexts.size(), devices.size());
}

TEST(DeviceManager, HandlesUnpack) {
  const auto [context, queue] = manager().default_device();
  EXPECT_EQ(queue, manager().default_device().queue);
  EXPECT_EQ(context, manager().default_device().context);
}

TEST(DeviceManager, ManyThreadsGetOneHandle) {
  DeviceManager fresh;
  std::vector<std::thread> threads;
  std::vector<DeviceHandle> handles(16);
  for (auto& handle : handles) threads.emplace_back([&] { handle = fresh.default_device("auto"); });
  for (auto& thread : threads) thread.join();
  for (const auto& handle : handles) EXPECT_EQ(handle, handles.front());
}

TEST(ActiveDevice, NestsAndRestores) {
  const auto outer = get_active_device();
  {
    const ActiveDevice cpu("cpu");
    EXPECT_EQ(get_active_device().backend, "cpu");
    {
      const ActiveDevice again(manager().default_device());
      EXPECT_EQ(get_active_device(), manager().default_device());
    }
    EXPECT_EQ(get_active_device().backend, "cpu");
    std::thread([&] { EXPECT_EQ(get_active_device(), outer); }).join();
  }
  EXPECT_EQ(get_active_device(), outer);
  EXPECT_THROW(ActiveDevice("no-such-device"), DeviceError);
  EXPECT_EQ(get_active_device(), outer);
}

TEST(Queue, WrappingTwiceGivesOneState) {
  NETCL_NEED_OPENCL();
  const auto handle = manager().default_device("opencl");
  EXPECT_EQ(Queue::wrap(handle.queue.get()), handle.queue);
  EXPECT_EQ(Context::wrap(handle.context.get()), handle.context);
  EXPECT_THROW(Queue::wrap(nullptr), ArgumentError);
}

TEST(Queue, ProfilingWhereAskedFor) {
  NETCL_NEED_OPENCL();
  const ScopedEnv scope("NETCL_PROFILE_EVENTS", "1");
  DeviceManager fresh;
  EXPECT_TRUE(fresh.default_device("opencl").queue.has_profiling());
}

TEST(Queue, TheCpuQueueIsAlwaysFinished) {
  const CPUQueue queue("mine");
  EXPECT_TRUE(queue.is_cpu());
  EXPECT_EQ(queue.name(), "mine");
  EXPECT_STREQ(queue.backend(), "cpu");
  queue.finish();
  interruptible_finish(queue, 1);
  EXPECT_THROW(Queue().finish(), ArgumentError);
}

}  // namespace
}  // namespace netcl
