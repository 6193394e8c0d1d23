// The loader: the same batches with any number of workers, errors at their place, no hanging.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/interrupt.h"
#include "netcl/data.h"
#include "netcl/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/host_arrays.h"

namespace netcl::data {
namespace {

using test::array_of;
using test::message_of;
using test::patterned;
using test::same_bits;

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << part << "\n  is not in " << (message)

std::shared_ptr<ArrayDataset> numbers(std::int64_t count) {
  HostArray labels({count}, DType::int64);
  for (std::int64_t i = 0; i < count; ++i)
    labels.values<std::int64_t>()[static_cast<std::size_t>(i)] = i % 7;
  return std::make_shared<ArrayDataset>(patterned({count, 2, 6, 5}, DType::uint8), labels);
}

// A dataset that does what a test tells it to.
class Scripted : public Dataset {
 public:
  Scripted(std::int64_t count, std::function<Sample(std::int64_t)> script)
      : count_(count), script_(std::move(script)) {}
  std::int64_t size() const override { return count_; }
  Sample sample(std::int64_t index) const override { return script_(index); }
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  std::int64_t count_;
  std::function<Sample(std::int64_t)> script_;
  std::vector<std::string> classes_ = {"a", "b"};
};

Sample plain_sample(std::int64_t index) {
  return {array_of<std::uint8_t>({1, 1, 1}, {static_cast<std::uint8_t>(index)}), index % 2};
}

struct Seen {
  std::vector<std::int64_t> samples, labels;
  HostArray images;
  bool operator==(const Seen& other) const {
    return samples == other.samples && labels == other.labels && same_bits(images, other.images);
  }
};

Seen seen(const Batch& batch) {
  return {batch.samples, batch.labels.to_vector<std::int64_t>(), batch.images.to_host()};
}

std::vector<Seen> rest_of_epoch(Loader& loader) {
  std::vector<Seen> all;
  for (const Batch& batch : loader) all.push_back(seen(batch));
  return all;
}

LoaderOptions random_options(const Queue& queue, int workers) {
  return {.batch = 8,
          .shuffle = true,
          .seed = 42,
          .workers = workers,
          .prefetch = 3,
          .queue = queue,
          .transforms = {random_horizontal_flip(), random_crop(6, 5, 2), to_float(),
                         normalise({0.5f, 0.4f}, {0.2f, 0.3f})}};
}

TEST(Loader, GivesTheSameBatchesWithAnyNumberOfWorkers) {
  const auto set = numbers(100);
  test::on_every_device([&](const Queue& queue) {
    std::vector<std::vector<Seen>> epochs;
    for (const int workers : {0, 1, 2, 4}) {
      Loader loader(set, random_options(queue, workers));
      ASSERT_EQ(loader.batches(), 13);
      for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        EXPECT_EQ(loader.epoch(), static_cast<std::int64_t>(epoch));
        auto all = rest_of_epoch(loader);
        ASSERT_EQ(all.size(), 13u);
        if (workers == 0)
          epochs.push_back(std::move(all));
        else
          EXPECT_EQ(all, epochs[epoch]) << workers << " workers, epoch " << epoch;
      }
    }
    EXPECT_FALSE(epochs[0] == epochs[1]);
    std::multiset<std::int64_t> used;
    for (const auto& batch : epochs[1]) used.insert(batch.samples.begin(), batch.samples.end());
    EXPECT_EQ(used.size(), 100u);
    EXPECT_EQ(std::set<std::int64_t>(used.begin(), used.end()).size(), 100u);
  });
}

TEST(Loader, BatchesAreWhatTheDatasetHas) {
  const auto set = numbers(10);
  Loader loader(set, {.batch = 4});
  std::int64_t at = 0, index = 0;
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch.index, index++);
    EXPECT_EQ(batch.images.dtype(), DType::uint8);
    EXPECT_EQ(batch.labels.dtype(), DType::int64);
    const auto images = batch.images.to_host();
    for (std::size_t i = 0; i < batch.samples.size(); ++i, ++at) {
      EXPECT_EQ(batch.samples[i], at);
      const auto sample = set->sample(at);
      EXPECT_EQ(batch.labels.to_vector<std::int64_t>()[i], sample.label);
      for (int j = 0; j < 60; ++j)
        ASSERT_EQ(images.at(static_cast<std::int64_t>(i) * 60 + j), sample.image.at(j));
    }
  }
  EXPECT_EQ(at, 10);
  EXPECT_EQ(index, 3);
  Loader full(set, {.batch = 4, .drop_last = true});
  EXPECT_EQ(full.batches(), 2);
  EXPECT_EQ(rest_of_epoch(full).size(), 2u);
  Loader one(set, {.batch = 10});
  EXPECT_EQ(rest_of_epoch(one).size(), 1u);
}

TEST(Loader, GoesOnWhereItWas) {
  const auto set = numbers(50);
  const auto queue = get_active_device().queue;
  Loader whole(set, random_options(queue, 2));
  std::vector<Seen> all;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (auto& batch : rest_of_epoch(whole)) all.push_back(std::move(batch));
  ASSERT_EQ(all.size(), 21u);
  for (const std::size_t taken : {0u, 1u, 3u, 6u, 7u, 8u, 20u}) {
    LoaderState state;
    {
      Loader first(set, random_options(queue, 2));
      for (std::size_t given = 0; given < taken;) given += first.next() ? 1 : 0;
      state = first.state();
    }
    auto options = random_options(queue, 3);
    options.seed = 7;  // the state's counts
    Loader second(set, options);
    second.next();
    second.restore(state);
    EXPECT_EQ(second.state(), state);
    std::vector<Seen> rest(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(taken));
    while (second.epoch() < 3)
      for (auto& batch : rest_of_epoch(second)) rest.push_back(std::move(batch));
    EXPECT_EQ(rest, all) << taken;
  }
  // An epoch by its number, also from the middle of another.
  whole.start_epoch(0);
  whole.next();
  whole.start_epoch(1);
  EXPECT_EQ(whole.epoch(), 1);
  EXPECT_EQ(rest_of_epoch(whole), std::vector<Seen>(all.begin() + 7, all.begin() + 14));
  EXPECT_EQ(whole.epoch(), 2);
}

TEST(Loader, RefusesStatesOfOthers) {
  Loader loader(numbers(50), {.batch = 8});
  const auto good = loader.state();
  const auto refuses = [&](auto change, const char* part) {
    auto state = good;
    change(state);
    EXPECT_SAYS(message_of<ArgumentError>([&] { loader.restore(state); }), part);
  };
  refuses([](auto& state) { state.samples = 51; }, "51, 8");
  refuses([](auto& state) { state.batch = 9; }, "50, 9");
  refuses([](auto& state) { state.shuffle = true; }, "true");
  refuses([](auto& state) { state.drop_last = true; }, "true");
  refuses([](auto& state) { state.position = 8; }, "[0, 7]: 0 and 8");
  refuses([](auto& state) { state.position = -1; }, "-1");
  refuses([](auto& state) { state.epoch = -1; }, "-1");
  EXPECT_THROW(loader.start_epoch(-1), ArgumentError);
}

TEST(Loader, RefusesBadOptions) {
  const auto set = numbers(5);
  const auto refuses = [&](const LoaderOptions& options, const char* part) {
    EXPECT_SAYS(message_of<ArgumentError>([&] { Loader(set, options); }), part);
  };
  refuses({.batch = 0}, "positive: 0");
  refuses({.workers = -1}, "-1");
  refuses({.prefetch = 0}, "prefetched: 0");
  refuses({.batch = 6, .drop_last = true}, "5 samples in batches of 6, full ones only");
  refuses({.transforms = {Transform()}}, "transform");
  EXPECT_THROW(Loader(nullptr), ArgumentError);
  EXPECT_THROW(Loader(numbers(0)), ArgumentError);
}

TEST(Loader, ErrorsOfWorkersComeWithTheirSample) {
  const auto failing = [](auto error) {
    return std::make_shared<Scripted>(20, [error](std::int64_t index) {
      if (index == 9) throw error;
      return plain_sample(index);
    });
  };
  for (const int workers : {0, 1, 3}) {
    Loader loader(failing(FormatError("broken file")), {.batch = 4, .workers = workers});
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    for (int again = 0; again < 2; ++again)
      EXPECT_SAYS(message_of<FormatError>([&] { loader.next(); }), "sample 9: broken file");
    EXPECT_EQ(loader.state().position, 2);
    loader.start_epoch(3);
    EXPECT_TRUE(loader.next());
  }
  Loader files(failing(FileError("gone")), {.batch = 20});
  EXPECT_SAYS(message_of<FileError>([&] { files.next(); }), "sample 9: gone");
  Loader others(failing(std::runtime_error("other")), {.batch = 20});
  EXPECT_SAYS(message_of<Error>([&] { others.next(); }), "sample 9: other");
  Loader strange(failing(3), {.batch = 20});
  EXPECT_SAYS(message_of<Error>([&] { strange.next(); }), "sample 9");
}

TEST(Loader, RefusesSamplesThatDoNotFit) {
  const auto with = [](std::function<Sample(std::int64_t)> script) {
    return std::make_shared<Scripted>(6, std::move(script));
  };
  Loader shapes(with([](std::int64_t i) {
                  return Sample{patterned({1, i == 4 ? 3 : 2, 2}, DType::uint8), 0};
                }),
                {.batch = 6});
  EXPECT_SAYS(message_of<ShapeError>([&] { shapes.next(); }),
              "sample 0 has uint8 (1, 2, 2), sample 4 has uint8 (1, 3, 2)");
  Loader labels(with([](std::int64_t i) {
                  return Sample{patterned({1, 1, 1}, DType::uint8), i == 5 ? 2 : 0};
                }),
                {.batch = 6});
  EXPECT_SAYS(message_of<ArgumentError>([&] { labels.next(); }),
              "sample 5: labels must be in [0, 2): 2");
  Loader nothing(with([](std::int64_t) { return Sample{}; }), {.batch = 6});
  EXPECT_SAYS(message_of<ArgumentError>([&] { nothing.next(); }), "default-made");
  Loader transform(numbers(6), {.transforms = {random_crop(50, 50)}});
  EXPECT_SAYS(message_of<ShapeError>([&] { transform.next(); }), "sample 0: [random_crop]");
}

TEST(Loader, PrefetchIsBounded) {
  std::atomic<int> asked = 0;
  const auto set = std::make_shared<Scripted>(100, [&](std::int64_t index) {
    ++asked;
    return plain_sample(index);
  });
  Loader loader(set, {.batch = 1, .workers = 4, .prefetch = 3});
  EXPECT_EQ(asked, 0);  // nothing before it is wanted
  for (int given = 1; given <= 50; ++given) {
    loader.next();
    EXPECT_LE(asked, given + 3);
  }
}

TEST(Loader, CanBeDestroyedAtAnyMoment) {
  for (int round = 0; round < 30; ++round) {
    std::atomic<int> busy = 0;
    const auto set = std::make_shared<Scripted>(1000, [&](std::int64_t index) {
      ++busy;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      return plain_sample(index);
    });
    Loader loader(set, {.batch = 100, .workers = 3});
    if (round % 3 != 0) loader.start_epoch(round);
    if (round % 3 == 2) loader.next();
    // A batch takes 10 ms: its making is given up between two samples.
  }
}

TEST(Loader, EpochsCanBeChangedAtAnyMoment) {
  const auto set = std::make_shared<Scripted>(200, [](std::int64_t index) {
    std::this_thread::sleep_for(std::chrono::microseconds(index % 7));
    return plain_sample(index);
  });
  Loader loader(set, {.batch = 10, .shuffle = true, .workers = 4, .prefetch = 4});
  for (int round = 0; round < 200; ++round) {
    loader.start_epoch(round % 5);
    const auto order = shuffled(200, 0, static_cast<std::uint64_t>(round % 5));
    for (int i = 0; i < round % 4; ++i) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->samples,
                std::vector<std::int64_t>(order.begin() + i * 10, order.begin() + i * 10 + 10));
    }
  }
}

TEST(Loader, WorksBesideComputing) {
  const auto set = numbers(400);
  test::on_every_device([&](const Queue& queue) {
    double expected = 0, sum = 0;
    for (std::int64_t i = 0; i < set->size(); ++i)
      for (int j = 0; j < 60; ++j) expected += set->sample(i).image.at(j);
    LoaderOptions options{.batch = 16, .shuffle = true, .workers = 3, .queue = queue};
    options.transforms = {[](const HostArray& image, RandomStream&) {
      HostArray result(image.shape(), DType::float32);
      for (std::int64_t i = 0; i < image.numel(); ++i)
        result.values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(image.at(i));
      return result;
    }};
    Loader loader(set, options);
    Tensor total = Tensor::from_shape(queue, Shape{});
    for (const Batch& batch : loader) total = total + ops::sum(batch.images);
    sum = total.item();
    EXPECT_EQ(sum, expected);
  });
}

TEST(Loader, CtrlCEndsTheWait) {
  std::atomic<bool> release = false;
  const auto set = std::make_shared<Scripted>(4, [&](std::int64_t index) {
    while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return plain_sample(index);
  });
  Loader loader(set, {.batch = 4});
  int polls = 0;
  interrupt::set_poll_hook([&] {
    if (++polls == 3) throw Interrupted("stop");
  });
  EXPECT_THROW(loader.next(), Interrupted);
  interrupt::set_poll_hook(nullptr);
  release = true;
  EXPECT_EQ(loader.next()->samples.size(), 4u);  // nothing was lost
}

TEST(Loader, AForkedChildGetsAnErrorAndDoesNotHang) {
  Loader loader(numbers(100), {.batch = 10, .queue = manager().default_device("cpu").queue});
  loader.next();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    bool refused = false;
    try {
      loader.next();
    } catch (const ForkError&) {
      refused = true;
    }
    loader.~Loader();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(loader.next());
}

}  // namespace
}  // namespace netcl::data
