#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "netcl/netcl.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using test::ScopedEnv;

struct Recording {
  Recording() {
    clear_profile();
    start_profiling();
  }
  ~Recording() {
    stop_profiling();
    clear_profile();
  }
};

Program scale_program(const Queue& queue) {
  return KernelSpec{.name = "scale",
                    .src = "__kernel void scale(__global float* x) { x[get_global_id(0)] *= 2; }",
                    .workgroup_size = 64,
                    .tune = false}
      .build(queue);
}

Queue profiling_queue() {
  const auto device = manager().default_device("opencl");
  return Queue::create(device.context, device.queue.device(), true);
}

TEST(Profiling, SummaryCountsAndTimes) {
  NETCL_NEED_OPENCL();
  const auto queue = profiling_queue();
  const auto program = scale_program(queue);
  const auto x = Tensor::full(queue, {1 << 20}, 1);
  const Recording recording;
  {
    const CostScope cost({1 << 20, 2 * 4.0 * (1 << 20)});
    for (int i = 0; i < 10; ++i) program.run(queue, 1 << 20, nullptr, x);
  }
  const auto rows = kernel_summary();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "scale");
  EXPECT_EQ(rows[0].count, 10u);
  EXPECT_GT(rows[0].min_us, 0);
  EXPECT_LE(rows[0].min_us, rows[0].mean_us);
  EXPECT_LE(rows[0].mean_us, rows[0].max_us);
  EXPECT_NEAR(rows[0].total_ms, rows[0].mean_us * 10 / 1e3, 1e-6 * rows[0].total_ms);
  EXPECT_NEAR(rows[0].gbytes_per_s / rows[0].gflops, 8, 1e-6);
  EXPECT_NE(profile_report().find("scale"), std::string::npos);
}

TEST(Profiling, WithoutCostTheArgumentsCount) {
  NETCL_NEED_OPENCL();
  const auto queue = profiling_queue();
  const auto x = Tensor::full(queue, {1 << 16}, 1);
  const auto program = scale_program(queue);
  const Recording recording;
  program.run(queue, 1 << 16, nullptr, x);
  const auto row = kernel_summary().at(0);
  EXPECT_EQ(row.gflops, 0);
  EXPECT_NEAR(row.gbytes_per_s, 4.0 * (1 << 16) / (row.total_ms * 1e6), 1e-6 * row.gbytes_per_s);
}

TEST(Profiling, QueuesWithoutProfilingAreCounted) {
  NETCL_NEED_OPENCL();
  const auto device = manager().default_device("opencl");
  if (device.queue.has_profiling()) GTEST_SKIP() << "the device was made with profiling";
  const auto program = scale_program(device.queue);
  const auto x = Tensor::full(device.queue, {64}, 1);
  const Recording recording;
  program.run(device.queue, 64, nullptr, x);
  EXPECT_EQ(kernel_summary().at(0).count, 1u);
  EXPECT_EQ(kernel_summary().at(0).total_ms, 0);
  EXPECT_THROW(EventTimer{device.queue}, DeviceError);
}

TEST(Profiling, OffByDefault) {
  clear_profile();
  test::on_every_device([](const Queue& queue) { Tensor::random(queue, {10}, 1).to_host(); });
  { const TimingRegion region("unseen"); }
  EXPECT_TRUE(kernel_summary().empty());
  EXPECT_TRUE(region_summary().empty());
}

TEST(Profiling, Regions) {
  const Recording recording;
  test::on_every_device([](const Queue& queue) {
    const TimingRegion outer("outer", queue);
    const TimingRegion inner("inner");
    Tensor::random(queue, {100'000}, 1).astype(DType::float16);
  });
  const auto rows = region_summary();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "outer") << "the region around the other takes longer";
  EXPECT_EQ(rows[0].count, test::all_devices().size());
}

TEST(Profiling, EventTimer) {
  NETCL_NEED_OPENCL();
  const auto queue = profiling_queue();
  const auto x = Tensor::full(queue, {1 << 16}, 1);
  const auto event = scale_program(queue).run(queue, 1 << 16, nullptr, x);
  const auto record = EventTimer(queue).time_event(event, "scale");
  EXPECT_EQ(record.name, "scale");
  EXPECT_GT(record.duration_ms, 0);
}

void expect_valid_trace(const std::string& path, bool with_kernels) {
  const auto trace = nlohmann::json::parse(test::read_text(path));
  std::size_t spans = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++spans;
    EXPECT_TRUE(event.at("ts").is_number());
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_FALSE(event.at("name").get<std::string>().empty());
  }
  EXPECT_EQ(spans > 1, with_kernels);
}

// Kernel spans lie within the region around them: the device's clock was brought to the host's.
TEST(Profiling, TheTraceHasOneClock) {
  NETCL_NEED_OPENCL();
  const auto queue = profiling_queue();
  const auto x = Tensor::full(queue, {1 << 20}, 1);
  const auto program = scale_program(queue);
  queue.finish();
  const Recording recording;
  {
    const TimingRegion region("around", queue);
    for (int i = 0; i < 5; ++i) program.run(queue, 1 << 20, nullptr, x);
  }
  const test::TempDir dir;
  write_chrome_trace(dir / "trace.json");
  expect_valid_trace(dir / "trace.json", true);
  double begin = 0, end = 0;
  const auto trace = nlohmann::json::parse(test::read_text(dir / "trace.json"));
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == "around") {
      begin = event.at("ts");
      end = begin + event.at("dur").get<double>();
    }
  // Between taking the host's time and the driver's stamp, on a machine that does other things.
  constexpr double kSlackUs = 50'000;
  for (const auto& event : trace.at("traceEvents"))
    if (event.value("cat", "") == "kernel") {
      EXPECT_GE(event.at("ts").get<double>(), begin - kSlackUs);
      EXPECT_LE(event.at("ts").get<double>() + event.at("dur").get<double>(), end + kSlackUs);
    }
  EXPECT_THROW(write_chrome_trace(dir / "no/such/folder/trace.json"), FileError);
}

TEST(Profiling, TheEnvironmentSwitchesItOnForAnyProgram) {
  if (const auto role = test::child_role()) {
    const TimingRegion region("whole");
    Tensor::random({1000}, 1).astype(DType::float16).to_host();
    return;
  }
  const test::TempDir dir;
  const ScopedEnv scope("NETCL_PROFILE", (dir / "trace.json").c_str());
  EXPECT_EQ(test::ChildProcess("program").wait(), 0);
  expect_valid_trace(dir / "trace.json", !manager().discover().empty());
}

}  // namespace
}  // namespace netcl
