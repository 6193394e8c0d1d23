// Waiting for events so that it can be interrupted and limited in time.
#pragma once

#include "netcl/opencl.h"

namespace netcl::cl {

// `seconds` 0 means no limit. Blocks in the driver when nothing could interrupt and no limit is
// set, wakes up to look otherwise. Failures name the last commands of `state`, which may be null.
void wait(const Event& event, double seconds, const QueueState* state);

// Waits for everything enqueued so far.
void wait_for_queue(const Queue& queue, double seconds);

}  // namespace netcl::cl
