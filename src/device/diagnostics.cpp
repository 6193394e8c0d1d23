// The checks behind `netcl doctor`.
#include "netcl/diagnostics.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/env.h"
#include "base/file.h"
#include "base/format.h"
#include "cl/cl.h"
#include "netcl/device.h"
#include "netcl/error.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;
using Checks = std::vector<InstallationCheck>;

constexpr const char* kInstallLoader = "apt-get install ocl-icd-libopencl1";
constexpr const char* kInstallDriver =
    "apt-get install pocl-opencl-icd   (any CPU; for GPUs: intel-opencl-icd, mesa-opencl-icd, "
    "nvidia-opencl-icd or the vendor's driver)";

void check_loader(Checks& checks) {
  const auto problem = cl::loader_problem();
  if (problem.empty())
    checks.push_back({CheckStatus::good, "OpenCL loader", cl::loader_path(), ""});
  else
    checks.push_back({CheckStatus::problem, "OpenCL loader", problem, kInstallLoader});
}

// Where the loader looks for drivers: ocl-icd's variable, Khronos's variable, the usual place.
std::string vendor_directory() {
  for (const char* name : {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"})
    if (auto value = env::system(name); !value.empty()) return value;
  return "/etc/OpenCL/vendors";
}

InstallationCheck check_driver_file(const fs::path& file) {
  const auto subject = "driver file " + file.string();
  std::ifstream in(file);
  std::string library;
  if (!std::getline(in, library) || library.empty())
    return {CheckStatus::problem, subject, "it cannot be read or names no library",
            "reinstall the package that owns it: dpkg -S " + file.string()};
  // The loader has opened it already if it could: this only asks for the reason if not.
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr)
    return {CheckStatus::problem, subject, dlerror(),
            "reinstall the package that owns it: dpkg -S " + file.string()};
  dlclose(handle);
  return {CheckStatus::good, subject, library, ""};
}

void check_driver_files(Checks& checks) {
  const auto directory = vendor_directory();
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_regular_file(directory, error)) files.emplace_back(directory);
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (entry.path().extension() == ".icd") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty())
    checks.push_back({CheckStatus::problem, "OpenCL drivers",
                      fmt::format("there is no .icd file in {}", directory), kInstallDriver});
  for (const auto& file : files) checks.push_back(check_driver_file(file));
}

// Device files that exist but may not be opened explain a GPU that does not show up.
void check_device_files(Checks& checks) {
  std::vector<fs::path> files = {"/dev/kfd", "/dev/nvidia0", "/dev/nvidiactl", "/dev/mali0"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/dev/dri", error))
    if (entry.path().filename().string().starts_with("renderD")) files.push_back(entry.path());
  for (const auto& file : files) {
    if (!fs::exists(file, error)) continue;
    if (::access(file.c_str(), R_OK | W_OK) == 0)
      checks.push_back({CheckStatus::good, "device file " + file.string(), "may be opened", ""});
    else
      checks.push_back({CheckStatus::problem, "device file " + file.string(),
                        "this user may not open it",
                        "usermod -aG render,video $USER   (then log in again)"});
  }
}

void check_platforms(Checks& checks) {
  try {
    for (const auto& problem : manager().problems())
      checks.push_back({CheckStatus::warning, "platform " + problem.platform_name, problem.problem,
                        "see the driver's own documentation"});
    if (manager().discover().empty())
      checks.push_back({CheckStatus::problem, "OpenCL devices",
                        "no platform has a device: netcl runs on its CPU backend", kInstallDriver});
  } catch (const Error& error) {
    checks.push_back({CheckStatus::problem, "OpenCL devices", error.what(), kInstallDriver});
  }
}

void check_cache_directory(Checks& checks) {
  const auto directory = cache_directory();
  if (directory.empty()) {
    checks.push_back(
        {CheckStatus::warning, "cache directory", "none: HOME is not set",
         "set NETCL_CACHE_DIR; kernels are compiled anew in every process until then"});
    return;
  }
  const auto reason = ensure_private_directory(directory);
  if (reason.empty())
    checks.push_back({CheckStatus::good, "cache directory", directory, ""});
  else
    checks.push_back({CheckStatus::warning, "cache directory", reason,
                      "set NETCL_CACHE_DIR to a directory of this user that others cannot write"});
}

}  // namespace

std::vector<InstallationCheck> check_installation() {
  Checks checks;
  check_loader(checks);
  check_driver_files(checks);
  check_device_files(checks);
  check_platforms(checks);
  check_cache_directory(checks);
  return checks;
}

}  // namespace netcl
