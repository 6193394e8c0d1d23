#include "bench/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/interrupt.h"

namespace netcl::bench {
namespace {

constexpr int kSilenceSeconds = 600;  // compiling a network takes minutes; more is a hang

struct Pipe {
  int read = -1, write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  check<Error>(::pipe2(ends.data(), O_CLOEXEC) == 0, "[bench] a pipe could not be made: errno {}",
               errno);
  return {ends[0], ends[1]};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Peer::Peer(std::vector<std::string> command) {
  const auto in = make_pipe(), out = make_pipe();
  auto arguments = command;
  arguments.insert(arguments.begin(), "env");  // finds the program, and takes NAME=value before it
  auto argv = pointers(arguments);
  // Nothing between fork and exec but calls that are safe in a process with threads.
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in.read, STDIN_FILENO);
    ::dup2(out.write, STDOUT_FILENO);
    ::execv("/usr/bin/env", argv.data());
    ::_exit(127);
  }
  ::close(in.read);
  ::close(out.write);
  to_ = in.write;
  from_ = out.read;
  const auto shown = join(command, " ");
  check<Error>(pid_ > 0, "[bench] '{}' could not be started: errno {}", shown, errno);
  std::string line;
  const bool spoke = read_line(line);
  const auto hello = nlohmann::json::parse(spoke ? line : "", nullptr, false);
  check<Error>(hello.is_object() && hello.contains("name") && hello.contains("contenders"),
               "[bench] '{}' must first say its name and contenders in a line of JSON: {}", shown,
               spoke ? line : "it ended");
  name_ = hello["name"].get<std::string>();
  contenders_ = hello["contenders"].get<std::vector<std::string>>();
  device_ = hello.value("device", "");
  threads_ = hello.value("threads", 0);
}

Peer::~Peer() {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  if (pid_ <= 0) return;
  for (int i = 0; i < 100; ++i) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) return;
    ::usleep(20'000);
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Peer::read_line(std::string& line) {
  for (int waited = 0;;) {
    if (const auto end = rest_.find('\n'); end != std::string::npos) {
      line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return true;
    }
    interrupt::poll();
    pollfd ready{from_, POLLIN, 0};
    const int count = ::poll(&ready, 1, 1000);
    if (count == 0 && ++waited < kSilenceSeconds) continue;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    std::array<char, 4096> bytes;
    const auto got = ::read(from_, bytes.data(), bytes.size());
    if (got <= 0) return false;
    rest_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

nlohmann::json Peer::ask(const nlohmann::json& request) {
  const auto text = request.dump() + "\n";
  std::string line;
  // A peer that died must not end us with SIGPIPE.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  std::size_t sent = 0;
  while (sent < text.size()) {
    const auto count = ::write(to_, text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    sent += static_cast<std::size_t>(count);
  }
  ::sigaction(SIGPIPE, &before, nullptr);
  if (sent < text.size() || !read_line(line)) return {{"declined", "the peer's process ended"}};
  auto answer = nlohmann::json::parse(line, nullptr, false);
  if (!answer.is_object()) return {{"declined", "the peer's answer is not JSON: " + line}};
  return answer;
}

}  // namespace netcl::bench
