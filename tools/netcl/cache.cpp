// netcl cache: the compiled kernels on disk.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "command.h"
#include "netcl/environment.h"
#include "netcl/program_cache.h"

namespace netcl::cli {
namespace {

std::string date_text(std::chrono::system_clock::time_point when) {
  return fmt::format("{:%Y-%m-%d %H:%M}",
                     fmt::localtime(std::chrono::system_clock::to_time_t(when)));
}

int list() {
  const auto entries = program_cache_list();
  std::uint64_t bytes = 0;
  for (const auto& entry : entries) {
    fmt::print("{}  {:>8.1f} KiB  {}  {}\n", entry.key.substr(0, 12),
               static_cast<double>(entry.bytes) / 1024, date_text(entry.last_used),
               entry.description);
    bytes += entry.bytes;
  }
  fmt::print("{} programs, {:.1f} MiB in {}\n", entries.size(),
             static_cast<double>(bytes) / (1 << 20), cache_directory());
  return 0;
}

int clear() {
  fmt::print("{} programs removed\n", program_cache_clear());
  return 0;
}

int verify() {
  const auto result = program_cache_verify();
  fmt::print("{} programs are intact, {} were damaged and have been removed\n", result.good,
             result.bad);
  return result.bad == 0 ? 0 : 1;
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("cache", "the compiled kernels kept on disk");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* text, int (*run)()) {
    command->add_subcommand(name, text)->callback([&action, run] { action = run; });
  };
  add("list", "what is kept", list);
  add("clear", "removes all of it", clear);
  add("verify", "checks every entry and removes damaged ones", verify);
}

}  // namespace netcl::cli
