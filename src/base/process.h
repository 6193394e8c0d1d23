// Whether this process may still call a driver. A fork of a process that used one must not (its
// worker threads are gone and locks may be held for ever), nor may destructors that run after exit
// began (the driver's own static objects may be gone).
#pragma once

namespace netcl::process {

// To be called after a driver was loaded: from then on a fork is guarded, and `at_exit` hooks run
// before the driver's own exit handlers. Calling it again moves our handler ahead of drivers that
// were loaded since.
void mark_driver_used();

// For destructors: false means leave the object alone.
bool calls_allowed() noexcept;

// For everything else: throws ForkError in a forked child, Error after shutdown.
void require(const char* where);

// `hook` runs once when the process exits in the ordinary way, before calls are disallowed.
void at_exit(void (*hook)());

// Runs the hooks now and disallows further calls; what exit does. For tests and embedders.
void shutdown() noexcept;

}  // namespace netcl::process
