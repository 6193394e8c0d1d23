// What attention promises beyond its samples: keys that nobody sees may hold anything.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/registry.h"
#include "support/devices.h"

namespace netcl {
namespace {

constexpr std::int64_t kQueries = 41, kKeys = 300, kSeen = 270, kWidth = 20, kColumns = 34;

// Rows from `seen` on hold `other`.
Tensor rows_of(const Queue& q, std::int64_t columns, int seed, float other) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < kKeys * columns; ++i)
    values.push_back(i / columns >= kSeen ? other : std::sin(static_cast<float>(i * seed)));
  return Tensor::from_host(q, values).view({kKeys, columns});
}

Tensor mask_of(const Queue& q) {
  std::vector<float> seen;
  for (std::int64_t i = 0; i < kKeys; ++i) seen.push_back(i < kSeen ? 1.0f : 0.0f);
  return Tensor::from_host(q, seen).astype(DType::boolean);
}

// The result, and the gradients of q, k and v.
std::vector<std::vector<float>> results(const Queue& queue, std::int64_t queries, float other) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < queries * kWidth; ++i)
    values.push_back(std::cos(static_cast<float>(i)));
  const auto q = Tensor::from_host(queue, values).view({queries, kWidth});
  const auto k = rows_of(queue, kWidth, 3, other), v = rows_of(queue, kColumns, 5, other);
  const auto mask = mask_of(queue);
  const Attributes attributes{{"causal", false}, {"scale", 0.25}};
  const auto y = call_op(find_op("attention"), {q, k, v, mask}, attributes);
  const auto dy = Tensor::full(queue, y[0].shape(), 0.5);
  const auto grads =
      call_op(find_op("attention_backward"), {q, k, v, mask, y[0], y[1], dy, Tensor()}, attributes);
  std::vector<std::vector<float>> all = {y[0].to_vector<float>()};
  for (const auto& grad : grads) all.push_back(grad.to_vector<float>());
  return all;
}

TEST(Attention, KeysThatAreMaskedAwayMayHoldAnything) {
  test::on_every_device([](const Queue& q) {
    for (const std::int64_t queries : {std::int64_t{2}, kQueries}) {
      const auto wanted = results(q, queries, 0.5f);
      for (const float other :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const auto got = results(q, queries, other);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          for (std::size_t j = 0; j < wanted[i].size(); ++j)
            ASSERT_NEAR(got[i][j], wanted[i][j], 1e-5) << "result " << i << ", element " << j;
      }
    }
  });
}

}  // namespace
}  // namespace netcl
