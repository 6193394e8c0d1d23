#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "netcl/netcl.h"
#include "support/devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

using test::on_every_device;

// Bytes that differ from place to place, of any dtype (bool stays 0 or 1).
HostArray pattern(const Shape& shape, DType dtype, unsigned seed = 1) {
  HostArray array(shape, dtype);
  auto* bytes = static_cast<std::uint8_t*>(array.data());
  for (std::size_t i = 0; i < array.nbytes(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = static_cast<std::uint8_t>(dtype == DType::boolean ? seed >> 31 : seed >> 24);
  }
  return array;
}

bool same_bytes(const HostArray& a, const HostArray& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

TEST(Tensor, EveryDtypeSurvivesTheRoundTrip) {
  on_every_device([](const Queue& queue) {
    for (const auto dtype : kAllDTypes)
      for (const auto& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 3, 4, 5},
                                Shape{1, 1, 1, 1, 1, 1, 1, 2, 3}, Shape{0}, Shape{4, 0, 2}}) {
        const auto values = pattern(shape, dtype);
        for (const bool async : {false, true})
          for (const bool pinned : {false, true}) {
            const auto tensor = Tensor::from_host(queue, values, {async, pinned});
            EXPECT_EQ(tensor.dtype(), dtype);
            EXPECT_TRUE(same_bytes(tensor.to_host(), values)) << shape.to_string();
            auto later = tensor.to_host_async();
            EXPECT_TRUE(same_bytes(later.wait(), values));
          }
      }
  });
}

TEST(Tensor, LargeTransfers) {
  on_every_device([](const Queue& queue) {
    const auto values = pattern(Shape{5'000'003}, DType::float32);
    EXPECT_TRUE(same_bytes(Tensor::from_host(queue, values).to_host(), values));
  });
}

TEST(Tensor, TheHostArrayMayGoAtOnce) {
  on_every_device([](const Queue& queue) {
    std::vector<Tensor> tensors;
    std::vector<HostArray> expected;
    for (unsigned i = 0; i < 50; ++i) {
      auto values = pattern(Shape{100'000}, DType::int32, i + 1);
      expected.push_back(HostArray(values.shape(), values.dtype()));
      std::memcpy(expected.back().data(), values.data(), values.nbytes());
      tensors.push_back(Tensor::from_host(queue, values, {true, i % 2 == 0}));
      std::memset(values.data(), 0xff, values.nbytes());
    }
    for (std::size_t i = 0; i < tensors.size(); ++i)
      ASSERT_TRUE(same_bytes(tensors[i].to_host(), expected[i])) << i;
  });
}

TEST(Tensor, LittleStagingMemoryOnlySlowsDown) {
  const test::ScopedEnv scope("NETCL_PINNED_STAGING_MB", "1");
  on_every_device([](const Queue& queue) {
    const auto values = pattern(Shape{500'000}, DType::float32);
    std::vector<Tensor> tensors;
    for (int i = 0; i < 10; ++i) tensors.push_back(Tensor::from_host(queue, values));
    for (const auto& tensor : tensors) ASSERT_TRUE(same_bytes(tensor.to_host(), values));
  });
}

TEST(Tensor, WithoutAQueueTheActiveDeviceIsTaken) {
  on_every_device([](const Queue& queue) {
    const ActiveDevice active(DeviceHandle{"", "", queue.backend(), "", queue.context(), queue});
    EXPECT_EQ(Tensor::from_host(std::vector<float>{1, 2}).queue(), queue);
    EXPECT_EQ(Tensor::from_shape({2}).queue(), queue);
    EXPECT_EQ(Tensor::full({2}, 3).queue(), queue);
    EXPECT_EQ(Tensor::arange(0, 3).queue(), queue);
    EXPECT_EQ(Tensor::random({2}, 1).queue(), queue);
  });
}

// Memory from the pool still holds what its last user left there.
TEST(Tensor, FromShapeIsZeroAlsoInRecycledMemory) {
  on_every_device([](const Queue& queue) {
    for (const auto dtype : kAllDTypes) {
      { const auto dirty = Tensor::full(queue, {1000}, 1, dtype); }
      const auto zeros = Tensor::from_shape(queue, {1000}, dtype).to_host();
      for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(zeros.at(i), 0) << name_of(dtype);
    }
  });
}

TEST(Tensor, FullAndArange) {
  on_every_device([](const Queue& queue) {
    EXPECT_EQ(Tensor::full(queue, {3}, 2.5).to_vector<float>(),
              (std::vector<float>{2.5, 2.5, 2.5}));
    EXPECT_EQ(Tensor::full(queue, {2}, 300, DType::uint8).to_vector<std::uint8_t>(),
              (std::vector<std::uint8_t>{255, 255}));
    EXPECT_TRUE(std::isnan(Tensor::full(queue, {1}, NAN).item()));
    EXPECT_EQ(Tensor::arange(queue, 0, 5).to_vector<std::int64_t>(),
              (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(Tensor::arange(queue, 1, 0, -0.25, DType::float32).to_vector<float>(),
              (std::vector<float>{1, 0.75, 0.5, 0.25}));
    EXPECT_EQ(Tensor::arange(queue, 5, 0).numel(), 0);
    EXPECT_THROW(Tensor::arange(queue, 0, 5, 0), ArgumentError);
    EXPECT_THROW(Tensor::arange(queue, 0, INFINITY), ArgumentError);
  });
}

TEST(Tensor, HostViewsMayBeStrided) {
  on_every_device([](const Queue& queue) {
    const std::vector<int> values = {1, 2, 3, 4, 5, 6};
    const auto transposed =
        Tensor::from_host(queue, HostView(values.data(), {3, 2}, DType::int32, {1, 3}));
    EXPECT_EQ(transposed.to_vector<int>(), (std::vector<int>{1, 4, 2, 5, 3, 6}));
    const auto reversed =
        Tensor::from_host(queue, HostView(values.data() + 5, {6}, DType::int32, {-1}));
    EXPECT_EQ(reversed.to_vector<int>(), (std::vector<int>{6, 5, 4, 3, 2, 1}));
    EXPECT_THROW(Tensor::from_host(queue, HostView(values.data(), {6}, DType::int32, {1, 1})),
                 ShapeError);
    EXPECT_THROW(Tensor::from_host(queue, HostView(nullptr, {6}, DType::int32)), ArgumentError);
    EXPECT_THROW(HostView(values, Shape{4, 2}), ShapeError);
  });
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  on_every_device([](const Queue& queue) {
    const auto a = Tensor::from_host(queue, std::vector<float>{1, 2, 3});
    auto shared = a;
    auto clone = a.clone();
    shared.write(std::vector<float>{7, 8, 9});
    EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{7, 8, 9}));
    EXPECT_EQ(clone.to_vector<float>(), (std::vector<float>{1, 2, 3}));
    EXPECT_TRUE(a.shares_storage(shared));
    EXPECT_FALSE(a.shares_storage(clone));
  });
}

TEST(Tensor, WriteGoesThroughViewsAndConverts) {
  on_every_device([](const Queue& queue) {
    const auto matrix = Tensor::from_shape(queue, {3, 4}, DType::int32);
    auto column = matrix.select(1, 2);
    column.write(std::vector<double>{1.9, -2.9, 1e300});
    EXPECT_EQ(matrix.to_vector<int>(), (std::vector<int>{0, 0, 1, 0, 0, 0, -2, 0, 0, 0,
                                                         std::numeric_limits<int>::max(), 0}));
    EXPECT_THROW(column.write(std::vector<int>{1, 2}), ShapeError);
  });
}

TEST(Tensor, CopyFromAnOverlappingViewReadsTheOldValues) {
  on_every_device([](const Queue& queue) {
    const auto values = Tensor::arange(queue, 0, 6, 1, DType::float32);
    values.narrow(0, 1, 5).copy_from(values.narrow(0, 0, 5));
    EXPECT_EQ(values.to_vector<float>(), (std::vector<float>{0, 0, 1, 2, 3, 4}));
    values.copy_from(values.slice(0, Tensor::kBegin, Tensor::kEnd, -1));
    EXPECT_EQ(values.to_vector<float>(), (std::vector<float>{4, 3, 2, 1, 0, 0}));
  });
}

TEST(Tensor, MovesBetweenDevices) {
  const auto devices = test::all_devices();
  const auto values = pattern(Shape{3, 5}, DType::int64);
  for (const auto& from : devices)
    for (const auto& to : devices) {
      const auto tensor = Tensor::from_host(from.queue, values).transpose();
      const auto moved = tensor.to(to);
      EXPECT_EQ(moved.queue(), to.queue);
      EXPECT_TRUE(same_bytes(moved.to_host(), tensor.to_host()));
    }
  EXPECT_EQ(Tensor::from_shape({2}).to("cpu").queue(), manager().default_device("cpu").queue);
}

TEST(Tensor, ItemWaitAndText) {
  on_every_device([](const Queue& queue) {
    EXPECT_EQ(Tensor::full(queue, {}, 4.5).item(), 4.5);
    EXPECT_EQ(Tensor::full(queue, {1, 1}, 3, DType::boolean).item(), 1);
    EXPECT_THROW(Tensor::from_shape(queue, {2}).item(), ShapeError);
    const auto matrix = Tensor::arange(queue, 0, 20, 5, DType::int32).reshape({2, 2});
    matrix.wait();
    EXPECT_NE(
        matrix.to_string().find("Tensor([[ 0,  5],\n        [10, 15]], shape=(2, 2), dtype=int32"),
        std::string::npos)
        << matrix.to_string();
    const auto large = Tensor::from_shape(queue, {2000}).to_string();
    EXPECT_NE(large.find("0., 0., 0., ..., 0., 0., 0.]"), std::string::npos) << large;
    const auto mixed = Tensor::from_host(queue, std::vector<float>{1, -INFINITY, 0.5f, 1e20f, NAN});
    EXPECT_NE(mixed.to_string().find("[   1.,  -inf,   0.5, 1e+20,   nan]"), std::string::npos)
        << mixed.to_string();
  });
}

TEST(Tensor, AdoptedMemoryIsNotCopied) {
  on_every_device([](const Queue& queue) {
    alignas(4096) static std::int32_t memory[4] = {1, 2, 3, 4};
    memory[3] = 4;
    auto tensor = Tensor::adopt_host(queue, memory, {2, 2}, DType::int32);
    EXPECT_EQ(tensor.to_vector<int>(), (std::vector<int>{1, 2, 3, 4}));
    if (queue.is_cpu()) {
      memory[3] = 9;
      EXPECT_EQ(tensor.to_vector<int>(), (std::vector<int>{1, 2, 3, 9}));
      EXPECT_EQ(tensor.host_data(), memory);
    }
    EXPECT_THROW(Tensor::adopt_host(queue, nullptr, {2}, DType::int32), ArgumentError);
  });
}

TEST(Tensor, EmptyTensorsAndHugeShapesAreErrors) {
  EXPECT_THROW(Tensor().to_host(), ArgumentError);
  EXPECT_THROW(Tensor().reshape({0}), ArgumentError);
  EXPECT_EQ(Tensor().to_string(), "Tensor(empty)");
  on_every_device([](const Queue& queue) {
    EXPECT_THROW(Tensor::empty(queue, {std::int64_t{1} << 61}, DType::float64), ShapeError);
    EXPECT_THROW(Tensor::from_shape(queue, {std::int64_t{1} << 48}), OutOfMemory);
    EXPECT_EQ(Tensor::full(queue, {1}, 1).item(), 1) << "the device still works";
  });
}

TEST(Tensor, ManyThreadsOneDevice) {
  on_every_device([](const Queue& queue) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned id = 0; id < 8; ++id)
      threads.emplace_back([&, id] {
        for (unsigned round = 0; round < 20; ++round) {
          const auto values = pattern(Shape{64, 33}, DType::float32, id * 100 + round);
          const auto back = Tensor::from_host(queue, values).transpose().contiguous().transpose();
          if (!same_bytes(back.to_host(), values)) ++wrong;
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  });
}

TEST(Tensor, SteadyLoopsDoNotAllocate) {
  on_every_device([](const Queue& queue) {
    const auto step = [&] { Tensor::random(queue, {1000}, 1).astype(DType::float16).to_host(); };
    for (int i = 0; i < 5; ++i) step();
    const auto before = get_persistent_pool(queue)->get_stats().misses;
    for (int i = 0; i < 50; ++i) step();
    EXPECT_EQ(get_persistent_pool(queue)->get_stats().misses, before);
  });
}

}  // namespace
}  // namespace netcl
