// netcl env: the environment variables and their values.
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "netcl/environment.h"

namespace netcl::cli {
namespace {

int print_values() {
  for (const auto& variable : environment_variables()) {
    const auto value = environment_value(variable.name);
    fmt::print("{:<24} {:<10} {}\n", variable.name, value.empty() ? "-" : value, variable.effect);
  }
  const auto cache = cache_directory();
  fmt::print("\ncache directory: {}\n", cache.empty() ? "none" : cache);
  return 0;
}

int print_markdown() {
  fmt::print("{}", environment_markdown());
  return 0;
}

}  // namespace

void add_env(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("env", "the environment variables and the values in force");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "the table of docs/environment.md");
  command->callback([markdown, &action] {
    action = [markdown] { return *markdown ? print_markdown() : print_values(); };
  });
}

}  // namespace netcl::cli
