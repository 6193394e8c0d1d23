// netcl doctor: what is installed, what is missing, how to fix it, and whether devices compute
// right results.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "command.h"
#include "netcl/diagnostics.h"
#include "netcl/netcl.h"

namespace netcl::cli {
namespace {

void print(const InstallationCheck& check) {
  const char* mark = check.status == CheckStatus::good      ? "ok     "
                     : check.status == CheckStatus::warning ? "warning"
                                                            : "PROBLEM";
  fmt::print("{}  {}: {}\n", mark, check.subject, check.finding);
  if (!check.fix.empty()) fmt::print("         fix: {}\n", check.fix);
}

// y = a x + y by a kernel of this moment, odd sizes and a view included; empty when it is right.
std::string wrong_kernel_result(const Queue& queue) {
  constexpr std::int64_t kCount = 1003;
  const KernelSpec spec{.name = "netcl_doctor_axpy",
                        .params = {"__global const float* x", "__global float* y", "float a"},
                        .body = "  const int i = get_global_id(0);\n  y[i] = a * x[i] + y[i];",
                        .tune = false};
  const auto x = Tensor::arange(queue, 0, kCount, 1, DType::float32);
  const auto y = Tensor::full(queue, {kCount}, 1);
  spec.build(queue).run(queue, kCount, nullptr, x, y, 2.0f);
  const auto values = y.to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 2.0f * static_cast<float>(i) + 1)
      return fmt::format("element {} of 2 x + 1 is {} instead of {}", i, values[i],
                         2 * static_cast<float>(i) + 1);
  return {};
}

// The same random bits, transposed and converted, as the CPU backend has them.
std::string wrong_tensor_result(const Queue& queue) {
  const auto compute = [](const Queue& on) {
    return Tensor::random(on, {37, 53}, 7, Distribution::normal)
        .transpose()
        .astype(DType::float16)
        .to_vector<float>();
  };
  return compute(queue) == compute(manager().default_device("cpu").queue)
             ? std::string()
             : "random numbers, transposed and converted, differ from the CPU backend's";
}

bool computes_right(const std::string& selector) {
  InstallationCheck check{CheckStatus::good, "device " + selector, "", ""};
  try {
    const auto handle = manager().default_device(selector);
    check.finding = handle.device_name + " computes right results";
    auto wrong = wrong_tensor_result(handle.queue);
    if (wrong.empty() && !handle.queue.is_cpu()) wrong = wrong_kernel_result(handle.queue);
    if (!wrong.empty())
      check = {CheckStatus::problem, check.subject, handle.device_name + ": " + wrong,
               "update the driver, or choose another device with NETCL_DEVICE"};
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    check = {CheckStatus::problem, check.subject, error.what(),
             "update the driver, or choose another device with NETCL_DEVICE"};
  }
  print(check);
  return check.status == CheckStatus::good;
}

int run() {
  fmt::print("netcl {}\n", NETCL_VERSION);
  for (const auto& check : check_installation()) print(check);
  std::fflush(stdout);  // what follows may take a while on a slow compiler
  const auto count = manager().discover().size();
  std::size_t right = 0;
  for (std::size_t i = 0; i < count; ++i)
    right += computes_right("opencl:" + std::to_string(i)) ? 1 : 0;
  const bool backend = computes_right("cpu");
  const bool healthy = right > 0 || (!built_with_opencl() && backend);
  fmt::print("\n{}\n", healthy   ? "netcl is ready."
                       : backend ? "No OpenCL device works; netcl runs on its CPU backend."
                                 : "No device computes right results.");
  return healthy ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "doctor", "what is installed, what is missing, and whether devices compute right");
  command->callback([&action] { action = run; });
}

}  // namespace netcl::cli
