// Parameters of a variant for a call: stored ones where tuning found some, else the defaults.
#pragma once

#include "ops/dispatch.h"

namespace netcl {

// Remembered per variant and problem size until tuning finds something new. With NETCL_AUTOTUNE=1
// what the store does not know is tuned first, on the tensors of the call.
std::shared_ptr<const Parameters> parameters_of(const OpCall& call, const OpVariant& variant,
                                                const KernelConfig& config);

// What the selector's rules configure for a kernel that was not chosen by them.
KernelConfig config_of(std::string_view kernel, const KernelProblem& problem,
                       const ExtendedDeviceProfile& profile);

}  // namespace netcl
