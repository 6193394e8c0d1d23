// What the tests of captures share: data, and the comparison with the bare function.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "netcl/autograd.h"
#include "netcl/capture.h"
#include "netcl/jit.h"
#include "netcl/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl::test {

using Tensors = std::vector<Tensor>;

inline Tensor normal(const Queue& queue, const Shape& shape, std::uint64_t seed) {
  return Tensor::random(queue, shape, seed, Distribution::normal);
}

inline Tensor labels_of(const Queue& queue, const std::vector<std::int64_t>& values) {
  return Tensor::from_host(queue, values);
}

inline void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  const auto x = a.to_host(), y = b.to_host();
  EXPECT_EQ(std::memcmp(x.data(), y.data(), x.nbytes()), 0) << a.to_string() << b.to_string();
}

// The results of the first calls of a step and of the bare function, bit for bit.
inline void expect_as_eager(const CapturedStep::Function& function,
                            const std::function<Tensors(int)>& inputs_of, bool is_replayed) {
  CapturedStep step(function);
  for (int call = 0; call < 6; ++call) {
    SCOPED_TRACE(call);
    const auto inputs = inputs_of(call);
    const auto expected = function(inputs);
    const auto results = step(inputs);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) expect_same_bits(results[i], expected[i]);
  }
  EXPECT_EQ(step.stats().replays, is_replayed ? 4U : 0U);
  EXPECT_EQ(step.stats().captures, is_replayed ? 1U : 0U);
  EXPECT_EQ(step.why_not().empty(), is_replayed) << step.why_not();
}

}  // namespace netcl::test
