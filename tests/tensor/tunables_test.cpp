#include "netcl/tunables.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "netcl/netcl.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"
#include "tensor/kernels.h"

namespace netcl {
namespace {

// A problem whose "kernel" is the host: what it costs and writes is up to the test.
TunableProblem fake_problem(std::vector<std::byte>& memory,
                            std::function<void(const Parameters&, std::vector<std::byte>&)> work) {
  TunableProblem problem;
  problem.op = "fake";
  problem.tunables = {{"WG", {1, 2}}, {"ITEMS", {1, 4}}};
  problem.defaults = {{"WG", 1}, {"ITEMS", 1}};
  problem.prepare = [&memory, work](const Parameters& parameters) {
    return [&memory, work, parameters] { work(parameters, memory); };
  };
  problem.output = [&memory] { return memory; };
  return problem;
}

void spin_us(double microseconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e6 <
         microseconds) {
  }
}

TEST(TuneParameters, TheFastestRightCombinationWins) {
  std::vector<std::byte> memory(8);
  const auto problem = fake_problem(memory, [](const Parameters& p, std::vector<std::byte>& out) {
    const bool fast_and_wrong = p.at("WG") == 2 && p.at("ITEMS") == 1;
    out.assign(8, fast_and_wrong ? std::byte{9} : std::byte{1});
    spin_us(fast_and_wrong ? 1 : p.at("ITEMS") == 4 && p.at("WG") == 2 ? 100 : 400);
  });
  const auto record = tune_parameters(CPUQueue(), problem);
  EXPECT_EQ(record.parameters, (Parameters{{"WG", 2}, {"ITEMS", 4}}));
  ASSERT_EQ(record.candidates.size(), 4u);
  EXPECT_EQ(record.candidates.front().parameters, problem.defaults);
  EXPECT_GT(record.default_us, record.runtime_us);
  for (const auto& candidate : record.candidates)
    if (candidate.parameters == Parameters{{"WG", 2}, {"ITEMS", 1}}) {
      EXPECT_EQ(candidate.note, "wrong result");
      EXPECT_TRUE(std::isinf(candidate.runtime_us));
    }
}

TEST(TuneParameters, RefusalsAndFailuresAreNoted) {
  std::vector<std::byte> memory(1);
  auto problem = fake_problem(memory, [](const Parameters& p, std::vector<std::byte>&) {
    if (p.at("ITEMS") == 4) throw DeviceError("[x] too much: 4");
  });
  problem.declines = [](const Parameters& p) {
    return p.at("WG") == 2 ? std::string("two is too many") : std::string();
  };
  const auto record = tune_parameters(CPUQueue(), problem);
  EXPECT_EQ(record.parameters, problem.defaults);
  std::vector<std::string> notes;
  for (const auto& candidate : record.candidates) notes.push_back(candidate.note);
  EXPECT_EQ(notes, (std::vector<std::string>{"", "[x] too much: 4", "two is too many",
                                             "two is too many"}));
  problem.declines = [](const Parameters&) { return "never"; };
  EXPECT_THROW(tune_parameters(CPUQueue(), problem), DeviceError);
}

TEST(TuneParameters, RegistryAndReport) {
  register_builtin_tunables();
  EXPECT_EQ(tunable_ops(),
            (std::vector<std::string>{"add", "cast", "conv2d", "copy", "matmul", "random"}));
  EXPECT_THROW(tunable_problems("nonsense", CPUQueue()), ArgumentError);
  TuningRecord record;
  record.parameters = {{"WG", 64}};
  record.runtime_us = 2;
  record.default_us = 5;
  record.candidates = {{{}, {{"WG", 1}}, 5, ""},
                       {{}, {{"WG", 64}}, 2, ""},
                       {{}, {{"WG", 4096}}, INFINITY, "<script> is too large"}};
  const auto page = tuning_report_html("a device <1>", {{"cast", "f32 & f16", record}});
  EXPECT_NE(page.find("a device &lt;1&gt;"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt; is too large"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"n\">2.50</td>"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos) << "nothing is loaded from elsewhere";
}

// Every combination of the search spaces gives the bits of the CPU backend, also at odd sizes.
TEST(ElementKernels, EveryParameterCombinationIsRight) {
  const auto cpu = manager().default_device("cpu").queue;
  for (const auto& device : test::opencl_devices())
    for (const std::int64_t n : {1, 63, 1000, 4097}) {
      const auto kernel = random_kernel(DType::float32, Distribution::normal);
      const auto expected = Tensor::random(cpu, {n}, 7, Distribution::normal).to_vector<float>();
      for (const std::int64_t local : {1, 16, 256})
        for (const std::int64_t items : {1, 4, 16}) {
          const auto launch =
              compile_elements(device.queue, kernel, {{"WG", local}, {"ITEMS", items}});
          const auto to = Tensor::full(device.queue, {n + 1}, -1);
          enqueue_random(device.queue, launch, to.buffer(), DType::float32, n, 7);
          auto values = to.to_vector<float>();
          ASSERT_EQ(values.back(), -1) << "wrote past the end";
          values.pop_back();
          ASSERT_EQ(values, expected) << n << " " << local << " " << items;
        }
    }
}

TEST(ElementKernels, StoredResultsAreUsedAndNonsenseIsNot) {
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  const auto kernel = random_kernel(DType::float32, Distribution::uniform);
  const auto problem = element_problem(queue, kernel, 1 << 12);
  const auto launch = [&] {
    return element_launch(queue, kernel, 1 << 12, [] { return TunableProblem(); });
  };
  TuningRecord record;
  record.runtime_us = record.default_us = 1;
  record.parameters = {{"WG", 16}, {"ITEMS", 16}};
  default_tuning_store().record(problem.key, record);
  EXPECT_EQ(launch().items, 16u);
  EXPECT_EQ(launch().local, 16u);
  EXPECT_EQ(element_launch(queue, kernel, 1 << 16, [] { return TunableProblem(); }).items,
            static_cast<std::size_t>(problem.defaults.at("ITEMS")))
      << "another size class";
  // Values outside the search space are not launched, whoever wrote them.
  record.parameters = {{"WG", 3}, {"ITEMS", 16}};
  default_tuning_store().record(element_problem(queue, kernel, 1 << 18).key, record);
  const auto safe = element_launch(queue, kernel, 1 << 18, [] { return TunableProblem(); });
  EXPECT_EQ(safe.items, static_cast<std::size_t>(problem.defaults.at("ITEMS")));
  EXPECT_NE(safe.local, 3u);
}

TEST(ElementKernels, AutotuneFillsTheStoreAtFirstUse) {
  if (test::child_role()) {
    const auto queue = manager().default_device("opencl").queue;
    const auto transposed = [](const Queue& on) {
      return Tensor::arange(on, 0, 1000, 1, DType::float32)
          .reshape({10, 100})
          .transpose()
          .contiguous()
          .to_vector<float>();
    };
    EXPECT_EQ(transposed(queue), transposed(manager().default_device("cpu").queue));
    EXPECT_GE(default_tuning_store().size(), 1u);
    return;
  }
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  const test::ScopedEnv on("NETCL_AUTOTUNE", "1"),
      file("NETCL_TUNING_FILE", (dir / "tuning.json").c_str());
  EXPECT_EQ(test::ChildProcess("autotune").wait(), 0);
  EXPECT_NE(test::read_text(dir / "tuning.json").find("\"copy\""), std::string::npos);
}

}  // namespace
}  // namespace netcl
