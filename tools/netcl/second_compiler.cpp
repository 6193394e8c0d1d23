#include "second_compiler.h"

#include <fcntl.h>
#include <spawn.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "netcl/compile_ahead.h"
#include "netcl/environment.h"

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
  // Its threads go where this process leaves a core free.
  auto variables = environment_with({"NETCL_COMPILE_AHEAD=worker", "POCL_AFFINITY=0"});
  auto words = own_command();
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

void compile_only(const std::function<void()>& work) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  WithheldLaunches launches;
  work();
  launches.launch();
}

}  // namespace

bool compiled_ahead(const std::function<void()>& work) {
  const auto role = compile_role();
  if (role == CompileRole::second) {
    compile_only(work);
    return true;
  }
  if (role == CompileRole::first && std::thread::hardware_concurrency() > 1)
    on_first_compilation(start_second_compiler);
  return false;
}

}  // namespace netcl::cli
