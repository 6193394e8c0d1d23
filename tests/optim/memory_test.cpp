// A training loop of 2,000 steps holds no more at its end than at its beginning.
#include <gtest/gtest.h>

#include <fstream>

#include "netcl/netcl.h"
#include "support/devices.h"
#include "support/sanitizers.h"

namespace netcl {
namespace {

using test::on_every_device;

struct Held {
  std::uint64_t in_use, allocated, resident;
};

std::uint64_t resident_bytes() {
  std::uint64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

Held held(const Queue& queue) {
  queue.finish();
  const auto stats = get_persistent_pool(queue)->stats();
  return {stats.bytes_in_use, stats.bytes_allocated, resident_bytes()};
}

template <class Forward>
void train(const Queue& queue, const Forward& forward, BackwardOptions options) {
  nn::manual_seed(1);
  const auto model = nn::make<nn::Sequential>(std::vector<nn::ModulePtr>{
      nn::make<nn::Linear>(8, 32), nn::make<nn::BatchNorm1d>(32), nn::relu(),
      nn::make<nn::Dropout>(0.1), nn::make<nn::Linear>(32, 4)});
  model->to(queue);
  optim::Adam adam(model->parameters(), {.lr = 1e-2});
  const auto x = Tensor::random(queue, {16, 8}, 1, Distribution::normal);
  const auto labels = ops::argmax(x.narrow(1, 0, 4));
  Tensor kept;  // a loss that outlives its step must not hold the step
  Held early{};
  double first = 0;
  for (int step = 1; step <= 2000; ++step) {
    {
      Tape tape;
      kept = nn::cross_entropy(forward(*model, x), labels);
      tape.backward(kept, {}, options);
      adam.step();
      adam.zero_grad();
    }
    if (step == 1) first = kept.item();
    if (step == 100) early = held(queue);
  }
  const auto late = held(queue);
  EXPECT_EQ(late.in_use, early.in_use);
  EXPECT_EQ(late.allocated, early.allocated);
  if (!test::kThreadSanitizer)  // its notes about all memory that was touched are resident too
    EXPECT_LT(late.resident, early.resident + (8u << 20));
  EXPECT_LT(kept.item(), first / 4) << "and it learns";
}

Tensor plain(nn::Module& model, const Tensor& x) { return model(x); }

TEST(Memory, two_thousand_steps) {
  on_every_device([](const Queue& queue) { train(queue, plain, {.retain = false}); });
}

TEST(Memory, two_thousand_steps_that_retain) {
  const auto queue = manager().default_device("cpu").queue;
  train(queue, plain, {});
}

TEST(Memory, two_thousand_fused_steps) {
  on_every_device([](const Queue& queue) {
    train(queue, jit([](nn::Module& model, const Tensor& x) { return model(x); }),
          {.retain = false});
  });
}

}  // namespace
}  // namespace netcl
