// A case as netcl computes it on one device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "netcl/device.h"
#include "netcl/tensor.h"

namespace netcl::bench {

struct Work {
  std::function<void()> call;  // enqueues one repetition
  // Some elements of a result; calls the work where nothing was called yet.
  std::function<std::vector<double>()> probe;
};

// The values that every contender computes with: the same function of place and seed everywhere,
// in [-0.5, 0.5) times `scale`.
float input_value(std::uint32_t index, std::uint32_t seed);
Tensor input(const Queue& queue, const Shape& shape, std::uint32_t seed, double scale = 1);

// ArgumentError for a kind that this device does not do; the message is the reason.
Work prepare(const DeviceHandle& device, const std::string& parameters);

}  // namespace netcl::bench
