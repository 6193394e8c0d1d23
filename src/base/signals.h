// Keeps drivers from taking over the process's signals.
#pragma once

#include <signal.h>

#include <array>

namespace netcl {

// Restores the handlers of the signals that belong to the program at the end of the scope. Drivers
// built on LLVM install their own for SIGINT and others when they are loaded or compile something;
// Ctrl+C would then no longer reach the program's (or Python's) handler first.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers();
  ~KeepSignalHandlers();
  KeepSignalHandlers(const KeepSignalHandlers&) = delete;
  KeepSignalHandlers& operator=(const KeepSignalHandlers&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                          SIGPIPE, SIGUSR1, SIGUSR2};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace netcl
