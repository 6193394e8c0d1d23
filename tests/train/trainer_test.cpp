// The loop: it learns, goes on with the same bits, keeps its memory.
#include <gtest/gtest.h>

#include "netcl/memory.h"
#include "netcl/train.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/file_limit.h"
#include "support/host_arrays.h"
#include "toy_data.h"

namespace netcl::train {
namespace {

using test::message_of;
using test::TempDir;
using test::ToyData;

std::vector<std::string> selectors() {
  std::vector<std::string> result{"cpu"};
  for (std::size_t i = 0; i < test::opencl_devices().size(); ++i)
    result.push_back("opencl:" + std::to_string(i));
  return result;
}

Options options_for(const std::string& data, const std::string& device) {
  Options options;
  options.data = data;
  options.device = device;
  options.batch = 10;  // 30 steps in an epoch of 300
  options.epochs = 2;
  options.seed = 7;
  return options;
}

void expect_same_bits(const Trainer& a, const Trainer& b) {
  const auto left = a.classifier().model()->state_dict(),
             right = b.classifier().model()->state_dict();
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    EXPECT_TRUE(test::same_bits(left[i].tensor.to_host(), right[i].tensor.to_host()))
        << left[i].name;
}

void expect_same_history(const Trainer& a, const Trainer& b) {
  ASSERT_EQ(a.curve().size(), b.curve().size());
  for (std::size_t i = 0; i < a.curve().size(); ++i) {
    EXPECT_EQ(a.curve()[i].step, b.curve()[i].step);
    EXPECT_EQ(a.curve()[i].loss, b.curve()[i].loss);
    EXPECT_EQ(a.curve()[i].accuracy, b.curve()[i].accuracy);
  }
  ASSERT_EQ(a.history().size(), b.history().size());
  for (std::size_t i = 0; i < a.history().size(); ++i) {
    EXPECT_EQ(a.history()[i].loss, b.history()[i].loss);
    EXPECT_EQ(a.history()[i].test_accuracy, b.history()[i].test_accuracy);
  }
}

TEST(Trainer, LearnsOnEveryDevice) {
  const ToyData data;
  for (const auto& device : selectors())
    for (const auto* model : {"mlp", "cnn"}) {
      SCOPED_TRACE(device + " " + model);
      auto options = options_for(data.path(), device);
      options.model = model;
      Trainer trainer(options);
      int reports = 0;
      trainer.run({.progress = [&](const Progress& now) { reports += now.batches == 30; }});
      EXPECT_GE(reports, 4);
      EXPECT_TRUE(trainer.finished());
      EXPECT_EQ(trainer.steps(), 60);
      ASSERT_EQ(trainer.history().size(), 2u);
      EXPECT_LT(trainer.history()[1].loss, trainer.history()[0].loss);
      EXPECT_GT(trainer.evaluate().accuracy, 0.9);
      EXPECT_EQ(trainer.evaluate().samples, 60);
    }
}

// Stopped in the middle of a window and of an epoch, at an epoch's end, and twice.
TEST(Trainer, GoesOnWithTheSameBits) {
  const ToyData data;
  const TempDir dir;
  for (const auto& device : selectors())
    for (const int stop : {30, 33, 7}) {
      SCOPED_TRACE(device + " " + std::to_string(stop));
      const auto options = options_for(data.path(), device);
      Trainer whole(options);
      whole.run();
      {
        Trainer first(options);
        first.run({}, stop);
        EXPECT_EQ(first.steps(), stop);
        first.save(dir / "run");
      }
      Options resumed;
      resumed.device = device;
      resumed.resume = dir / "run";
      Trainer second(resumed);
      const auto before = test::read_text(dir / "run");
      second.save(dir / "again");  // nothing is lost by going through a file
      EXPECT_EQ(test::read_text(dir / "again"), before);
      EXPECT_EQ(second.steps(), stop);
      second.run();
      EXPECT_EQ(second.steps(), 60);
      expect_same_bits(whole, second);
      expect_same_history(whole, second);
    }
}

// Dropout draws random numbers and batch norm keeps averages: both belong to the run.
TEST(Trainer, GoesOnWithDropoutAndBatchNorm) {
  const ToyData data(200, 40);
  const TempDir dir;
  test::write_text(dir / "net.json", R"({"type": "Sequential", "layers": [
    {"type": "Conv2d", "in": 1, "out": 4, "kernel": 3}, {"type": "BatchNorm2d", "channels": 4},
    {"type": "Activation", "function": "relu"}, {"type": "Flatten"},
    {"type": "Dropout", "p": 0.3}, {"type": "Linear", "in": 400, "out": 4}]})");
  for (const auto& device : selectors()) {
    SCOPED_TRACE(device);
    auto options = options_for(data.path(), device);
    options.model = dir / "net.json";
    options.epochs = 1;
    Trainer whole(options);
    whole.run();
    Trainer first(options);
    first.run({}, 9);
    first.save(dir / "run");
    auto resumed = options;
    resumed.resume = dir / "run";
    Trainer second(resumed);
    second.run();
    expect_same_bits(whole, second);
  }
}

// The rate belongs to the run as a whole: other epochs, another rate.
TEST(Trainer, TheRateFollowsItsSchedule) {
  const ToyData data(100, 20);
  auto options = options_for(data.path(), "cpu");
  options.model = "mlp";
  const auto weights = [&](std::int64_t epochs, const char* schedule) {
    options.epochs = epochs;
    options.schedule = schedule;
    Trainer trainer(options);
    EXPECT_EQ(trainer.schedule(), schedule);
    trainer.run({}, 10);
    EXPECT_EQ(trainer.lr(), 4e-3);
    return trainer.classifier().model()->state_dict().at(0).tensor.to_host();
  };
  const auto same = [](const HostArray& a, const HostArray& b) { return test::same_bits(a, b); };
  EXPECT_TRUE(same(weights(1, "constant"), weights(3, "constant")));
  EXPECT_TRUE(same(weights(1, "cosine"), weights(1, "cosine")));
  EXPECT_FALSE(same(weights(1, "cosine"), weights(3, "cosine")));
  EXPECT_FALSE(same(weights(1, "cosine"), weights(1, "constant")));
  options.schedule = "wild";
  EXPECT_NE(message_of<ArgumentError>([&] { Trainer trainer(options); }).find("wild"),
            std::string::npos);
}

TEST(Trainer, MemoryIsFlat) {
  const ToyData data(1200, 20);
  for (const auto& device : selectors()) {
    SCOPED_TRACE(device);
    auto options = options_for(data.path(), device);
    options.batch = 4;
    options.epochs = 1;
    options.workers = 0;  // batches that are made ahead would come and go
    Trainer trainer(options);
    const auto pool = get_persistent_pool(trainer.device().queue);
    trainer.run({}, 100);
    const auto early = pool->get_stats().bytes_in_use;
    const auto allocated = pool->get_stats().bytes_allocated;
    trainer.run({}, 199);
    EXPECT_EQ(trainer.steps(), 299);
    EXPECT_EQ(pool->get_stats().bytes_in_use, early);
    EXPECT_EQ(pool->get_stats().bytes_allocated, allocated);
  }
}

TEST(Trainer, RefusesWhatDoesNotFit) {
  const ToyData data(40, 20), other(40, 20, 16), more(40, 20, 18, 6);
  const TempDir dir;
  auto options = options_for(data.path(), "cpu");
  options.model = "mlp";
  {
    Trainer trainer(options);
    trainer.run({}, 2);
    trainer.save(dir / "run");
  }
  const auto error = [&](auto&& change) {
    Options resumed;
    resumed.device = "cpu";
    resumed.resume = dir / "run";
    change(resumed);
    return message_of<Error>([&] { Trainer trainer(resumed); });
  };
  EXPECT_EQ(error([](Options&) {}), "no error");
  EXPECT_NE(error([](Options& o) { o.model = "cnn"; }).find("another model"), std::string::npos);
  EXPECT_EQ(error([](Options& o) { o.model = "mlp"; }), "no error");
  EXPECT_NE(error([](Options& o) { o.batch = 11; }).find("batch"), std::string::npos);
  EXPECT_NE(error([](Options& o) { o.seed = 1; }).find("seed"), std::string::npos);
  EXPECT_NE(error([&](Options& o) { o.data = other.path(); }).find("images"), std::string::npos);
  EXPECT_NE(error([&](Options& o) { o.data = more.path(); }).find("classes"), std::string::npos);
  EXPECT_NE(error([&](Options& o) { o.data = dir / "nothing"; }).find("must exist"),
            std::string::npos);
  EXPECT_NE(error([&](Options& o) { o.resume = dir / "nothing"; }).find("nothing"),
            std::string::npos);
  EXPECT_NE(error([&](Options& o) { o.lr = -1; }).find("lr"), std::string::npos);
}

TEST(Trainer, TestLabelsOutOfRangeAreRefused) {
  const ToyData data(40, 20);
  test::write_toy_split(data.path(), "t10k", 20, 12, 9, 1);
  const auto message =
      message_of<ArgumentError>([&] { Trainer trainer(options_for(data.path(), "cpu")); });
  EXPECT_NE(message.find("labels must be in [0, 4)"), std::string::npos) << message;
}

TEST(Trainer, GoesWithoutTestData) {
  const ToyData data(40, 20);
  std::filesystem::remove(data.path() + "/t10k-images-idx3-ubyte");
  auto options = options_for(data.path(), "cpu");
  Trainer trainer(options);
  EXPECT_EQ(trainer.test_data(), nullptr);
  EXPECT_NE(trainer.test_data_problem().find("t10k-images"), std::string::npos);
  trainer.run();
  EXPECT_FALSE(trainer.history().at(0).tested);
  EXPECT_THROW(trainer.evaluate(), ArgumentError);
}

TEST(Trainer, AFullDiskLeavesTheFileBefore) {
  const ToyData data(40, 20);
  const TempDir dir;
  auto options = options_for(data.path(), "cpu");
  Trainer trainer(options);
  trainer.run({}, 2);
  trainer.save(dir / "run");
  const auto before = test::read_text(dir / "run");
  trainer.run({}, 1);
  {
    const test::FileSizeLimit limit(5000);
    EXPECT_THROW(trainer.save(dir / "run"), FileError);
  }
  EXPECT_EQ(test::read_text(dir / "run"), before);
  EXPECT_EQ(test::count_files(dir.path()), 1u);
  trainer.save(dir / "run");
  EXPECT_NE(test::read_text(dir / "run"), before);
}

// An exception of a callback stands for anything that happens between two steps.
TEST(Trainer, GoesOnAfterAnException) {
  const ToyData data;
  const auto options = options_for(data.path(), "cpu");
  Trainer whole(options), broken(options);
  whole.run();
  int calls = 0;
  const Callbacks callbacks{.progress = [&](const Progress&) {
    if (++calls == 2) throw Interrupted("now");
  }};
  EXPECT_THROW(broken.run(callbacks), Interrupted);
  EXPECT_TRUE(broken.can_save());
  broken.run();
  expect_same_bits(whole, broken);
  expect_same_history(whole, broken);
}

}  // namespace
}  // namespace netcl::train
