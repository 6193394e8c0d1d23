// A run that is killed while it saves leaves the checkpoint before or the new one, complete.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/file.h"
#include "netcl/train.h"
#include "support/child_process.h"
#include "toy_data.h"

namespace netcl::train {
namespace {

using test::child_role;
using test::ChildProcess;
using test::TempDir;
using test::ToyData;

Options toy_options(const std::string& data) {
  Options options;
  options.data = data;
  options.device = "cpu";
  options.model = "mlp";
  options.batch = 10;
  options.epochs = 1000;
  options.workers = 0;
  return options;
}

// Saves after every step, until it is killed.
void train_and_save(const std::string& directory) {
  Trainer trainer(toy_options(directory));
  for (int i = 0; i < 3000; ++i) {  // bounded: the parent may be killed too
    trainer.run({}, 1);
    trainer.save(directory + "/run");
    if (i == 1) test::write_text(directory + "/started", "x");
  }
}

TEST(Checkpoint, SurvivesBeingKilledAtAnyMoment) {
  if (const auto directory = child_role()) return train_and_save(*directory);
  const ToyData data(40, 20);
  const auto run = data.path() + "/run", started = data.path() + "/started";
  Trainer first(toy_options(data.path()));
  first.run({}, 1);
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    first.save(run);  // the previous one, which must not be lost
    std::filesystem::remove(started);
    {
      ChildProcess child(data.path());
      while (!std::filesystem::exists(started))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
      child.kill();
    }
    (void)Classifier::load(run);
    Options options;
    options.device = "cpu";
    options.resume = run;
    Trainer again(options);
    ASSERT_GE(again.steps(), 2);  // what the child had saved before it said so
    again.run({}, 1);
    for (const auto& [name, tensor] : again.classifier().model()->state_dict())
      EXPECT_TRUE(std::isfinite(ops::sum(tensor).item())) << name;
  }
  remove_stale_temporaries(data.path(), std::chrono::seconds(-10));
  std::filesystem::remove(started);
  EXPECT_EQ(test::count_files(data.path()), 5u);  // four of the data, and the checkpoint
}

}  // namespace
}  // namespace netcl::train
