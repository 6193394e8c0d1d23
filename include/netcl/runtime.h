// Waiting, interruption and the end of the process.
#pragma once

#include <functional>

#include "netcl/opencl.h"

namespace netcl {

// Waits until the queue is empty, polling at most every 10 ms so that Ctrl+C (where a handler or
// hook is installed) ends the wait with Interrupted. Throws TimeoutError after `timeout` seconds;
// 0 waits without limit. The work itself is never cancelled: OpenCL cannot.
void interruptible_finish(const Queue& queue, double timeout = 30.0);

// Ctrl+C sets a flag that the next wait turns into Interrupted. If nothing takes it within 3 s, or
// a second Ctrl+C comes before, the process ends with exit code 130. Returns false, and changes
// nothing, when the program has a handler of its own. The library never calls this by itself.
// also_sigterm: the same for SIGTERM, with which schedulers and service managers end a program;
// also where SIGINT is ignored, as in background jobs of scripts.
bool install_sigint_handler(bool also_sigterm = false);
void remove_sigint_handler();

// What a program that was interrupted exits with: 130 for Ctrl+C, 143 for SIGTERM.
int interrupt_exit_code();

// Called while netcl waits; may throw. For hosts with signal handling of their own (Python).
void set_interrupt_hook(std::function<void()> hook);

// Throws Interrupted when Ctrl+C is pending. For long loops on the host.
void check_interrupt();

}  // namespace netcl
