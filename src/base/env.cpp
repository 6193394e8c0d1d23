// The table of environment variables and the only getenv calls of the library.
#include "base/env.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/check.h"
#include "base/log.h"

namespace netcl {
namespace {

constexpr EnvironmentVariable kTable[] = {
    {"NETCL_DEVICE", "auto",
     "The selector that \"auto\" stands for: gpu, cpu, opencl:cpu, gpu:1, a name part."},
    {"NETCL_DEBUG", "0",
     "Verbosity on standard error: 1 devices, 2 kernel choice and why, 3 generated source, 4 every "
     "launch."},
    {"NETCL_KERNEL_STRATEGY", "auto",
     "Forces portable or optimized kernels; auto decides from the device."},
    {"NETCL_KERNEL_DIR", "",
     "Reads the .cl files from this directory instead of the embedded ones (development)."},
    {"NETCL_CONV_WINOGRAD", "1", "0 disables the Winograd variant of 3x3 convolutions."},
    {"NETCL_CONV_TILED_LOCAL", "0", "1 allows the tiled-local convolution on small outputs."},
    {"NETCL_MAX_CACHED_GB", "4",
     "Upper bound of what one PersistentBufferPool keeps for reuse, in GiB."},
    {"NETCL_ASYNC_H2D", "1", "0 makes Tensor::from_host wait for its copy."},
    {"NETCL_PINNED_H2D", "1", "0 stages uploads in ordinary instead of page-locked memory."},
    {"NETCL_PINNED_STAGING_MB", "512",
     "How much staging memory may be in flight before an upload waits."},
    {"NETCL_PROFILE_EVENTS", "0", "1 creates queues with event profiling."},
    {"NETCL_PROFILE", "",
     "Writes a Chrome trace of all kernels to this file and prints a summary at exit."},
    {"NETCL_CACHE_DIR", "",
     "Where compiled kernels and tuning results are kept; default is the user's cache directory."},
    {"NETCL_CACHE_MB", "512",
     "Upper bound of the compiled kernels kept on disk, in MiB; 0 keeps none."},
    {"NETCL_CACHE_BINARIES", "auto",
     "Whether netcl keeps compiled kernels itself: auto leaves them to drivers that do and whose "
     "binaries cost a second compilation (PoCL); 1 keeps those too."},
    {"NETCL_COMPILE_AHEAD", "1",
     "0 keeps netcl train from starting a second process that compiles half of the kernels when "
     "PoCL has none of them yet; worker is what that process is told."},
    {"NETCL_AUTOTUNE", "0", "1 lets built-in kernels be tuned at their first use."},
    {"NETCL_TUNING_FILE", "", "The tuning store; default is tuning.json in the cache directory."},
};

const EnvironmentVariable& row(std::string_view name) {
  for (const auto& entry : kTable)
    if (entry.name == name) return entry;
  fail("[environment] the variable must be in the table of src/base/env.cpp: {}", name);
}

template <class T>
T parsed(std::string_view name) {
  const auto value = env::text(name);
  T result{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error == std::errc{} && end == value.data() + value.size()) return result;
  const auto fallback = row(name).default_value;
  log::warn_once(fmt::format("{}={} is not a number: using {}", name, value, fallback));
  std::from_chars(fallback.data(), fallback.data() + fallback.size(), result);
  return result;
}

}  // namespace

namespace env {

std::string system(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::string() : std::string(value);
}

std::string text(std::string_view name) {
  const auto& entry = row(name);
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::string(entry.default_value) : std::string(value);
}

bool flag(std::string_view name) {
  const auto value = text(name);
  return !(value.empty() || value == "0" || value == "false" || value == "False" ||
           value == "off" || value == "no");
}

std::int64_t integer(std::string_view name) { return parsed<std::int64_t>(name); }
double number(std::string_view name) { return parsed<double>(name); }

// The addresses of the texts: setenv gives a variable another one with every other value.
std::uint64_t fingerprint() {
  std::uint64_t sum = 0, place = 0;
  if (environ == nullptr) return sum;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    place += 0x9e3779b97f4a7c15ull;
    const auto mixed = (reinterpret_cast<std::uintptr_t>(*entry) ^ place) * 0xbf58476d1ce4e5b9ull;
    sum += mixed ^ (mixed >> 31);
  }
  return sum;
}

}  // namespace env

std::span<const EnvironmentVariable> environment_variables() { return kTable; }

std::vector<std::string> environment_with(std::vector<std::string> changed) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  auto all = changed;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::none_of(changed.begin(), changed.end(),
                     [&](const std::string& other) { return name_of(other) == name_of(*entry); }))
      all.emplace_back(*entry);
  return all;
}

std::string environment_value(std::string_view name) { return env::text(name); }

std::string environment_markdown() {
  std::string table = "| variable | default | effect |\n|---|---|---|\n";
  for (const auto& entry : kTable)
    table += fmt::format(
        "| `{}` | {} | {} |\n", entry.name,
        entry.default_value.empty() ? "" : fmt::format("`{}`", entry.default_value), entry.effect);
  return table;
}

std::string cache_directory() {
  if (auto own = env::text("NETCL_CACHE_DIR"); !own.empty()) return own;
  if (auto xdg = env::system("XDG_CACHE_HOME"); !xdg.empty() && xdg[0] == '/')
    return xdg + "/netcl";
  if (auto home = env::system("HOME"); !home.empty()) return home + "/.cache/netcl";
  return {};
}

}  // namespace netcl
