#include "second_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "netcl/compile_ahead.h"

namespace netcl::cli {
namespace {

// The words of this process's command line.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\0', begin);
    words.push_back(text.substr(begin, end - begin));
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return words;
}

// Its threads go where this process leaves a core free.
std::vector<std::string> environment_of_second() {
  std::vector<std::string> all{"NETCL_COMPILE_AHEAD=worker", "POCL_AFFINITY=0"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("NETCL_COMPILE_AHEAD=") && !text.starts_with("POCL_AFFINITY="))
      all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// A process that cannot be started only means that this one compiles everything itself.
bool start_second_compiler() {
  std::error_code unreadable;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  auto words = own_command(), variables = environment_of_second();
  posix_spawn_file_actions_t files;
  if (unreadable || words.empty() || posix_spawn_file_actions_init(&files) != 0) return false;
  const int modes[] = {O_RDONLY, O_WRONLY, O_WRONLY};  // of standard input, output and error
  for (int i = 0; i < 3; ++i) posix_spawn_file_actions_addopen(&files, i, "/dev/null", modes[i], 0);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), &files, nullptr, pointers(words).data(),
                                 pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  return failed == 0;
}

}  // namespace

void start_second_compiler_when_needed() {
  if (compile_role() == CompileRole::first) on_first_compilation(start_second_compiler);
}

void compile_only(const std::function<void()>& work) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1) return;  // it has ended already
#endif
  WithheldLaunches launches;
  work();
  launches.launch();
}

}  // namespace netcl::cli
