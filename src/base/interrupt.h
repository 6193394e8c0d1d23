// Ctrl+C while netcl waits. The library installs nothing on its own; a program (the command line,
// the Python package) installs the handler or a poll hook, and from then on waits poll.
#pragma once

#include <functional>

namespace netcl::interrupt {

// How long a program may go on after Ctrl+C before the process is ended with exit_code().
inline constexpr double kGraceSeconds = 3.0;

// False when another handler is in place; then nothing is changed. A SIGTERM is then like a Ctrl+C
// where that is asked for, also in a background job, in which SIGINT is ignored.
bool install_handler(bool also_sigterm = false);
int exit_code() noexcept;  // 128 + the signal that came last: 130, or 143
void remove_handler();

// Called by every poll of a wait; may throw. For hosts that have signal handling of their own.
void set_poll_hook(std::function<void()> hook);

// True when something is installed that could interrupt: then waits poll, else they block.
bool enabled() noexcept;

// True once a Ctrl+C ended a wait; exit then does not wait for the device without limit.
bool happened() noexcept;

// Throws Interrupted when Ctrl+C is pending, or what the hook throws.
void poll();

// While one is alive polls do nothing and Ctrl+C stays pending: for work that must not be half
// done. The time that the program has left begins at its end; a second Ctrl+C still ends the
// process.
class Hold {
 public:
  Hold() noexcept;
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

}  // namespace netcl::interrupt
