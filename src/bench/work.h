// A case as netcl computes it on one device.
#pragma once

#include "bench/protocol.h"
#include "netcl/bench.h"
#include "netcl/device.h"
#include "netcl/tensor.h"

namespace netcl::bench {

Tensor input(const Queue& queue, const Shape& shape, std::uint32_t seed, double scale = 1);

// ArgumentError for a kind that this device does not do; the message is the reason.
Work prepare(const DeviceHandle& device, const std::string& parameters);

}  // namespace netcl::bench
