// A test that plays its second role in a new process: it starts this executable again with itself
// as the only test. Unlike fork this is safe in a process that has used OpenCL or threads.
//
//   TEST(Store, SurvivesKill) {
//     if (const auto role = child_role()) return worker(*role);
//     ChildProcess child("some argument");
//     ...
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace netcl::test {

inline constexpr std::string_view kChildVariable = "NETCL_TEST_CHILD_ROLE=";

// The argument of the ChildProcess that we are, or nothing in the parent.
inline std::optional<std::string> child_role() {
  const char* role = std::getenv("NETCL_TEST_CHILD_ROLE");
  return role == nullptr ? std::nullopt : std::optional<std::string>(role);
}

class ChildProcess {
 public:
  explicit ChildProcess(const std::string& role) {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::vector<std::string> arguments = {
        "child", "--gtest_filter=" + std::string(info->test_suite_name()) + "." + info->name()};
    auto variables = environment(role);
    auto argv = pointers(arguments), envp = pointers(variables);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int code =
        ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0) throw std::runtime_error("posix_spawn failed");
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    if (pid_ > 0) kill();
  }

  // The exit code (0 when every check of the child held), or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int kill(int signal = SIGKILL) {
    ::kill(pid_, signal);
    return wait();
  }

 private:
  // Without gtest's own variables: the child must not write the parent's report.
  static std::vector<std::string> environment(const std::string& role) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      if (!text.starts_with("GTEST_") && !text.starts_with("XML_OUTPUT_FILE=") &&
          !text.starts_with(kChildVariable))
        variables.emplace_back(text);
    }
    variables.push_back(std::string(kChildVariable) + role);
    // LeakSanitizer's tracer crashes in processes that end in unusual ways, which is what children
    // do.
    variables.push_back("ASAN_OPTIONS=detect_leaks=0");
    return variables;
  }

  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (auto& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }

  pid_t pid_ = -1;
};

}  // namespace netcl::test
