// How the command line is put together: each file adds its subcommands to the program, and a
// subcommand returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace netcl::cli {

// Exit codes; 0 is success.
inline constexpr int kProblem = 1, kUsage = 2;

// What the chosen subcommand wants to run.
using Action = std::function<int()>;

void add_devices(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_env(CLI::App& app, Action& action);
void add_cache(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_ops(CLI::App& app, Action& action);
void add_selftest(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);

// What the terminal shows in one line; 80 where that is unknown.
std::size_t terminal_width(int descriptor);

// A word of a command line as a shell reads it back.
std::string shell_word(const std::string& word);

}  // namespace netcl::cli
