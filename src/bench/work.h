// A case as netcl computes it on one device.
#pragma once

#include "bench/protocol.h"
#include "netcl/bench.h"
#include "netcl/device.h"
#include "netcl/tensor.h"

namespace netcl::bench {

Tensor input(const Queue& queue, const Shape& shape, std::uint32_t seed, double scale = 1);
std::vector<double> probe_of(const Tensor& result);

// Work that is a function of nothing: it keeps its latest result for the probe.
Work work(std::function<Tensor()> compute, std::vector<double> (*probe)(const Tensor&) = probe_of);
// The gradient of `op` with respect to x alone: what was recorded is walked back again and again.
Work gradient_work(Tensor x, const std::function<Tensor(const Tensor&)>& op);

// ArgumentError for a kind that this device does not do; the message is the reason.
Work prepare(const DeviceHandle& device, const std::string& parameters);

}  // namespace netcl::bench
