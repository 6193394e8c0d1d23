// Setting arguments and enqueueing, after everything was checked that can be checked.
#pragma once

#include "kernel/program_cache.h"

namespace netcl {

// The local size for a launch that gives none and has no tuned one: `preferred` (or 64) clamped to
// device and kernel where it divides the global size, else empty: the driver chooses.
WorkSize default_local_size(const detail::KernelState& kernel, const WorkSize& global,
                            const WorkSize& preferred);

// Enqueues; an empty local size is left to the driver. Errors name the kernel and the parameter.
// A zero-size range launches nothing and returns an empty (complete) event.
Event enqueue_kernel(const Queue& queue, detail::KernelState& kernel, const WorkSize& global,
                     const WorkSize& local, std::span<const KernelArg> args);

// What the argument checks need to know, for scratch copies of the tuner: is `args[i]` memory that
// the kernel may write?
bool may_write(const detail::KernelState& kernel, std::size_t index, const KernelArg& arg);

}  // namespace netcl
