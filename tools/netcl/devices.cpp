// netcl devices: what there is, what it can do, and what the selectors mean here.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "netcl/netcl.h"

namespace netcl::cli {
namespace {

using nlohmann::json;

constexpr const char* kSelectors[] = {"auto",   "cpu",        "gpu",       "accel",
                                      "opencl", "opencl:cpu", "opencl:gpu"};

std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= (std::uint64_t{1} << 30))
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= (std::uint64_t{1} << 20))
    return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.0f} KiB", static_cast<double>(bytes) / (1 << 10));
}

json profile_json(const ExtendedDeviceProfile& p) {
  return {{"name", p.name},
          {"vendor", p.vendor},
          {"device_type", p.device_type},
          {"family", name_of(p.gpu_family)},
          {"platform_name", p.platform_name},
          {"platform_version", p.platform_version},
          {"device_version", p.device_version},
          {"driver_version", p.driver_version},
          {"opencl_c_version", p.opencl_c_version},
          {"compute_units", p.compute_units},
          {"clock_mhz", p.clock_mhz},
          {"max_work_group_size", p.max_work_group_size},
          {"max_work_item_sizes", p.max_work_item_sizes},
          {"global_mem_size", p.global_mem_size},
          {"max_mem_alloc_size", p.max_mem_alloc_size},
          {"local_mem_size", p.local_mem_size},
          {"local_mem_is_real", p.local_mem_is_real},
          {"global_mem_cache_size", p.global_mem_cache_size},
          {"preferred_vector_width_float", p.preferred_vector_width_float},
          {"native_vector_width_float", p.native_vector_width_float},
          {"has_fp16", p.has_fp16},
          {"has_fp64", p.has_fp64},
          {"has_subgroups", p.has_subgroups},
          {"sub_group_sizes", p.sub_group_sizes},
          {"fast_atomics", p.fast_atomics},
          {"has_coarse_svm", p.has_coarse_svm},
          {"has_fine_grain_svm", p.has_fine_grain_svm},
          {"is_cpu", p.is_cpu},
          {"is_integrated", p.is_integrated},
          {"kernel_strategy", kernel_strategy(p)},
          {"extensions", p.extensions}};
}

json selectors_json() {
  auto result = json::object();
  for (const char* selector : kSelectors) {
    const auto handle = manager().find_device(selector);
    result[selector] = handle ? json(handle->backend + ": " + handle->device_name) : json(nullptr);
  }
  return result;
}

int print_json() {
  json out;
  out["devices"] = json::array();
  const auto devices = manager().discover();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    auto entry = profile_json(device_profile(devices[i].device));
    entry["selector"] = fmt::format("opencl:{}", i);
    entry["backend"] = "cl";
    out["devices"].push_back(entry);
  }
  auto cpu = profile_json(device_profile(Device()));
  cpu["selector"] = "cpu";
  cpu["backend"] = "cpu";
  out["devices"].push_back(cpu);
  out["problems"] = json::array();
  for (const auto& problem : manager().problems())
    out["problems"].push_back({{"platform", problem.platform_name}, {"problem", problem.problem}});
  out["selectors"] = selectors_json();
  fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
  return 0;
}

std::string features_text(const ExtendedDeviceProfile& p) {
  std::string text;
  const auto add = [&](bool has, std::string_view name) {
    if (has) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(p.has_fp16, "fp16");
  add(p.has_fp64, "fp64");
  add(p.has_subgroups, "sub-groups");
  add(p.fast_atomics, "64-bit atomics");
  add(p.has_fine_grain_svm, "fine-grain SVM");
  add(p.has_coarse_svm && !p.has_fine_grain_svm, "SVM");
  add(p.is_integrated, "shares memory with the host");
  return text.empty() ? "none" : text;
}

void print_profile(const std::string& selector, const ExtendedDeviceProfile& p) {
  fmt::print("{:<11} {}\n", selector, p.name);
  fmt::print("            {}, {}, {} units", p.device_type, name_of(p.gpu_family), p.compute_units);
  if (p.clock_mhz != 0) fmt::print(" at {} MHz", p.clock_mhz);
  fmt::print(", {} memory\n", bytes_text(p.global_mem_size));
  if (!p.device_version.empty())
    fmt::print("            {}, driver {}, work-groups up to {}, local memory {}{}\n",
               p.device_version, p.driver_version, p.max_work_group_size,
               bytes_text(p.local_mem_size), p.local_mem_is_real ? "" : " (ordinary memory)");
  fmt::print("            features: {}; kernels: {}\n", features_text(p), kernel_strategy(p));
}

int print_text() {
  const auto devices = manager().discover();
  std::string platform;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].platform_name != platform) {
      platform = devices[i].platform_name;
      fmt::print("platform {} ({})\n", platform, devices[i].platform_version);
    }
    print_profile(fmt::format("opencl:{}", i), device_profile(devices[i].device));
  }
  if (devices.empty()) fmt::print("no OpenCL device (`netcl doctor` says why)\n");
  fmt::print("the CPU backend\n");
  print_profile("cpu", device_profile(Device()));
  for (const auto& problem : manager().problems())
    fmt::print("platform {}: {}\n", problem.platform_name, problem.problem);
  fmt::print("\nselectors\n");
  for (const char* selector : kSelectors) {
    const auto handle = manager().find_device(selector);
    fmt::print(
        "  {:<11} {}\n", selector,
        handle ? handle->device_name + (handle->backend == "cpu" ? " (CPU backend)" : "") : "-");
  }
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("devices", "every device, its profile, and what selectors mean");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "as JSON");
  command->callback([as_json, &action] {
    action = [as_json] { return *as_json ? print_json() : print_text(); };
  });
}

}  // namespace netcl::cli
