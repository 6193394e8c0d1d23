#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "cl/cl.h"
#include "memory/bucket_pool.h"
#include "netcl/netcl.h"
#include "support/devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

TEST(SizeClass, PersistentClassesWasteLittle) {
  EXPECT_EQ(detail::persistent_class(0), 1024u);
  EXPECT_EQ(detail::persistent_class(1024), 1024u);
  EXPECT_EQ(detail::persistent_class(1025), 4096u);
  EXPECT_EQ(detail::persistent_class(1 << 20), std::size_t{1} << 20);
  for (std::size_t bytes = (1 << 20) + 1; bytes < (std::size_t{1} << 34); bytes += bytes / 7 + 1) {
    const auto size = detail::persistent_class(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_LT(static_cast<double>(size - bytes), 0.125 * static_cast<double>(bytes)) << bytes;
    ASSERT_EQ(detail::persistent_class(size), size) << bytes;
  }
}

TEST(SizeClass, PowersOfTwo) {
  EXPECT_EQ(detail::power_of_two_class(1), 256u);
  EXPECT_EQ(detail::power_of_two_class(257), 512u);
  EXPECT_EQ(detail::power_of_two_class(512), 512u);
}

TEST(PersistentPool, UsesMemoryAgain) {
  test::on_every_device([](const Queue& queue) {
    PersistentBufferPool pool(queue);
    auto first = pool.allocate(3000);
    EXPECT_EQ(first.nbytes(), 3000u);
    EXPECT_EQ(first.bucket_size(), 4096u);
    const auto* host = first.host();
    const auto* memory = first.buffer().get();
    first.release();
    first.release();  // does nothing
    EXPECT_FALSE(first);
    EXPECT_EQ(pool.get_stats().bytes_cached, 4096u);
    const auto second = pool.allocate(4000);
    EXPECT_EQ(second.host(), host);
    EXPECT_EQ(second.buffer().get(), memory);
    const auto stats = pool.get_stats();
    EXPECT_EQ(stats.hits, 1u);
    EXPECT_EQ(stats.misses, 1u);
    EXPECT_EQ(stats.hit_rate(), 0.5);
    EXPECT_EQ(stats.bytes_cached, 0u);
    EXPECT_EQ(stats.bytes_in_use, 4096u);
  });
}

// A lease that is given back twice must not be handed out twice.
TEST(PersistentPool, DoubleReleaseNeverSharesMemory) {
  test::on_every_device([](const Queue& queue) {
    PersistentBufferPool pool(queue);
    auto lease = pool.allocate(100);
    auto moved = std::move(lease);
    lease.release();  // NOLINT: a moved-from lease is empty
    moved.release();
    moved.release();
    const auto a = pool.allocate(100), b = pool.allocate(100);
    EXPECT_TRUE(a.host() != b.host() || a.buffer().get() != b.buffer().get());
  });
}

TEST(PersistentPool, TheBoundDropsTheLeastRecentlyUsedClass) {
  test::on_every_device([](const Queue& queue) {
    PersistentBufferPool pool(queue, 40000);
    { const auto old = pool.allocate(16000); }
    { const auto small = pool.allocate(1000), other = pool.allocate(4000); }
    EXPECT_EQ(pool.get_stats().buckets.count(16384), 1u);
    { const auto a = pool.allocate(4000), b = pool.allocate(1000), c = pool.allocate(30000); }
    const auto stats = pool.get_stats();
    EXPECT_LE(stats.bytes_cached, 40000u);
    EXPECT_EQ(stats.buckets.count(16384), 0u) << "the least recently used class goes first";
    EXPECT_EQ(stats.max_cached_bytes, 40000u);
  });
}

TEST(PersistentPool, EnvironmentSetsTheBound) {
  const test::ScopedEnv scope("NETCL_MAX_CACHED_GB", "0.5");
  EXPECT_EQ(PersistentBufferPool(CPUQueue()).get_stats().max_cached_bytes, std::uint64_t{1} << 29);
}

TEST(PersistentPool, OnePerQueue) {
  test::on_every_device([](const Queue& queue) {
    EXPECT_EQ(get_persistent_pool(queue), get_persistent_pool(queue));
    EXPECT_EQ(get_pinned_pool(queue), get_pinned_pool(queue));
  });
  EXPECT_THROW(get_persistent_pool(Queue()), ArgumentError);
}

TEST(PersistentPool, LeasesOutliveThePool) {
  test::on_every_device([](const Queue& queue) {
    BufferHandle lease;
    {
      PersistentBufferPool pool(queue);
      lease = pool.allocate(100);
    }
    EXPECT_TRUE(lease);
    lease.release();
  });
}

TEST(BufferPool, NeedsAContext) {
  EXPECT_THROW(BufferPool{Context()}, ArgumentError);
  NETCL_NEED_OPENCL();
  BufferPool pool(manager().default_device("opencl").context);
  auto lease = pool.allocate(1000);
  EXPECT_EQ(lease.bucket_size(), 1024u);
  EXPECT_TRUE(lease.buffer());
  lease.release();
  EXPECT_EQ(pool.stats().bytes_cached, 1024u);
  pool.clear();
  EXPECT_EQ(pool.stats().bytes_cached, 0u);
}

TEST(PinnedPool, HostMemoryReachesTheDevice) {
  for (const auto& handle : test::opencl_devices()) {
    const auto lease = get_pinned_pool(handle.queue)->allocate(1 << 16);
    ASSERT_NE(lease.host(), nullptr);
    std::memset(lease.host(), 42, 1 << 16);
    const auto target = get_persistent_pool(handle.queue)->allocate(1 << 16);
    cl::write(handle.queue.get(), target.buffer(), 0, 1 << 16, lease.host(), true);
    std::vector<char> back(1 << 16);
    cl::read(handle.queue.get(), target.buffer(), 0, back.size(), back.data(), true);
    EXPECT_EQ(back, std::vector<char>(1 << 16, 42));
  }
}

TEST(OutOfMemory, CarriesTheFiguresAndTheProcessGoesOn) {
  test::on_every_device([](const Queue& queue) {
    PersistentBufferPool pool(queue);
    { const auto cached = pool.allocate(5000); }
    const auto held = pool.allocate(100);
    constexpr auto kTooMuch = std::size_t{1} << 50;
    try {
      pool.allocate(kTooMuch);
      FAIL() << "an allocation of a petabyte succeeded";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.requested(), kTooMuch);
      EXPECT_EQ(error.in_use(), 1024u);
      EXPECT_EQ(error.cached(), 16384u);
      EXPECT_NE(std::string(error.what()).find(std::to_string(kTooMuch)), std::string::npos);
    }
    EXPECT_EQ(pool.stats().bytes_cached, 0u) << "the cache was trimmed before the second try";
    EXPECT_EQ(pool.stats().misses, 2u) << "a failed allocation is not counted";
    EXPECT_THROW(pool.allocate(SIZE_MAX), OutOfMemory);
    EXPECT_TRUE(pool.allocate(2000));
  });
}

// A source that has memory for one block at a time, to see the retry succeed.
class ScarceBlocks final : public detail::BlockSource {
 public:
  explicit ScarceBlocks(int* alive) : alive_(alive) {}
  std::unique_ptr<detail::Block> make(std::size_t bytes) override {
    if (*alive_ >= 1 && !freed_) return nullptr;
    auto block = std::make_unique<detail::Block>();
    block->host = std::malloc(bytes);
    block->bytes = bytes;
    ++*alive_;
    return block;
  }
  void settle() override { freed_ = true; }

 private:
  int* alive_;
  bool freed_ = false;
};

TEST(OutOfMemory, TrimmingMakesRoom) {
  int alive = 0;
  const auto pool = detail::make_pool(Context(), std::make_unique<ScarceBlocks>(&alive),
                                      detail::persistent_class);
  { const auto first = pool->allocate(100); }
  EXPECT_EQ(pool->stats().bytes_cached, 1024u);
  EXPECT_TRUE(pool->allocate(5000));  // another class: only trimming the cache makes room
  EXPECT_EQ(pool->stats().bytes_allocated, 1024u + 16384u);
}

// Every byte of every lease belongs to one thread: the stamp must be intact when it is given back.
TEST(PersistentPool, EightThreadsAMillionOperationsNothingLost) {
  PersistentBufferPool pool(CPUQueue(), std::uint64_t{64} << 20);
  constexpr int kThreads = 8, kOperations = 125000;
  std::atomic<int> damaged{0};
  const auto work = [&](unsigned id) {
    std::mt19937 random(id);
    std::vector<BufferHandle> held(16);
    for (int i = 0; i < kOperations; ++i) {
      auto& slot = held[random() % held.size()];
      if (slot) {
        const auto* stamp = static_cast<unsigned*>(slot.host());
        if (stamp[0] != id || stamp[slot.nbytes() / sizeof(unsigned) - 1] != id) ++damaged;
        slot.release();
      } else {
        slot = pool.allocate(8 + random() % 100000);
        auto* stamp = static_cast<unsigned*>(slot.host());
        stamp[0] = id;
        stamp[slot.nbytes() / sizeof(unsigned) - 1] = id;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned id = 1; id <= kThreads; ++id) threads.emplace_back(work, id);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  const auto stats = pool.get_stats();
  EXPECT_EQ(stats.bytes_in_use, 0u);
  EXPECT_LE(stats.bytes_cached, stats.max_cached_bytes);
  std::uint64_t cached = 0;
  for (const auto& [bytes, count] : stats.buckets) cached += bytes * count;
  EXPECT_EQ(cached, stats.bytes_cached);
}

TEST(ZeroCopy, TheDeviceWorksOnTheCallersMemory) {
  for (const auto& handle : test::opencl_devices()) {
    alignas(4096) static float memory[1024];
    const auto buffer = create_zero_copy_buffer(handle.queue, memory, sizeof memory);
    const float value = 7;
    cl::fill(handle.queue.get(), buffer, 0, sizeof memory, &value, sizeof value);
    auto* mapped = cl::map(handle.queue.get(), buffer, 0, sizeof memory);
    EXPECT_EQ(mapped, memory);
    EXPECT_EQ(memory[1023], 7);
    cl::unmap(handle.queue.get(), buffer, mapped);
    handle.queue.finish();
    EXPECT_THROW(create_zero_copy_buffer(handle.queue, nullptr, 10), ArgumentError);
  }
}

TEST(Helpers, CpuDevicesShareMemory) {
  test::on_every_device([](const Queue& queue) {
    EXPECT_TRUE(is_integrated_gpu(queue) || !device_profile(queue).is_cpu);
    if (!queue.is_cpu()) {
      EXPECT_EQ(create_pinned_buffer(queue, 100).nbytes(), 100u);
    } else {
      EXPECT_FALSE(has_svm_support(queue));
      EXPECT_THROW(create_pinned_buffer(queue, 100), ArgumentError);
    }
  });
}

}  // namespace
}  // namespace netcl
