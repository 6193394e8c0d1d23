// Host memory that the device may still touch although nobody waits for it any more: a wait was
// interrupted, a call failed, or a download was dropped. It is freed when its command has ended.
#pragma once

#include <memory>

#include "netcl/opencl.h"

namespace netcl::cl {

// Whether the command is over, in whatever way. False also when the driver does not say.
bool has_ended(const Event& event) noexcept;

// Holds `memory` until `event` has ended; looked at in later calls and by free_ended. Without end
// the memory is never freed: a leak is better than a device that writes into somebody else's.
void keep_until_ended(Event event, std::shared_ptr<const void> memory) noexcept;
void free_ended() noexcept;

}  // namespace netcl::cl
