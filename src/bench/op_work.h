// Cases of kind "op": one call of one op on a tensor of a given shape. A name says all else.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bench/protocol.h"
#include "netcl/device.h"

namespace netcl::bench {

Work op_work(const Queue& queue, const nlohmann::json& parameters);

}  // namespace netcl::bench
