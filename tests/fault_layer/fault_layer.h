// How a test talks to the layer, which the OpenCL loader has opened: it opens the same file again
// and asks for these functions by name.
#pragma once

extern "C" {

struct FaultLayerCounts {
  long calls;                                         // that could have been failed so far
  long contexts, queues, buffers, programs, kernels;  // alive
  long events;
};

// The `nth` call from now on (1 is the next) fails with `code`; 0 fails none. A code of 0 stands
// for the one of the codes plausible for that function whose turn `turn` is. `sticky`: all later
// calls fail as well, as those of a device that is gone.
void fault_layer_arm(long nth, int code, int turn, int sticky);

// The function that was failed since it was armed, or null.
const char* fault_layer_failed();

FaultLayerCounts fault_layer_counts();
}
