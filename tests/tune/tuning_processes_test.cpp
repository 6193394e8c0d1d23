// The tuning store between processes: eight writers, and writers killed at any moment, lose
// nothing.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "netcl/tuning_store.h"
#include "support/child_process.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"
#include "tune/sample_records.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;
using test::ChildProcess;
using test::key_of;
using test::record_of;
using test::TempDir;

// Sanitizers make parsing ten times slower.
constexpr int kRecords = test::kSanitized ? 8 : 30, kRounds = test::kSanitized ? 15 : 60;

// Role "<number> <path>": saves after each record, as tuners that may be stopped do.
void write_many(const std::string& role) {
  const int first = 1000 * (role[0] - '0');
  TuningStore store(role.substr(2));
  for (int i = 0; i < kRecords; ++i) {
    store.record(key_of(first + i), record_of(i));
    store.save();
  }
}

TEST(TuningProcesses, EightProcessesLoseNothing) {
  if (const auto role = test::child_role()) return write_many(*role);
  const TempDir dir;
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int p = 0; p < 8; ++p)
    children.push_back(std::make_unique<ChildProcess>(std::to_string(p) + " " + (dir / "t.json")));
  for (auto& child : children) EXPECT_EQ(child->wait(), 0);
  const TuningStore store(dir / "t.json");
  EXPECT_EQ(store.size(), 8u * kRecords);
  for (int p = 0; p < 8; ++p)
    for (int i = 0; i < kRecords; ++i)
      ASSERT_EQ(store.lookup(key_of(1000 * p + i)), record_of(i)) << p << " " << i;
}

// Role "<first number> <directory>": notes each record after its save came back.
void write_until_killed(const std::string& role) {
  const auto space = role.find(' ');
  const auto directory = role.substr(space + 1);
  TuningStore store(directory + "/t.json");
  std::ofstream saved(directory + "/saved", std::ios::app);
  for (int i = std::stoi(role.substr(0, space));; ++i) {
    store.record(key_of(i), record_of(i));
    store.save();
    saved << i << std::endl;
  }
}

std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> numbers;
  std::ifstream in(path);
  for (int number; in >> number;) numbers.push_back(number);
  return numbers;
}

TEST(TuningProcesses, KillsAtAnyMomentLoseNothing) {
  if (const auto role = test::child_role()) return write_until_killed(*role);
  const TempDir dir;
  std::mt19937 random(7);
  for (int round = 0; round < kRounds; ++round) {
    const auto before = numbers_in(dir / "saved").size();
    // Two at once, so that one also dies while the other waits for the lock or has just read.
    const auto role = [&](int half) {
      return std::to_string(10000 * (2 * round + half)) + " " + dir.path().string();
    };
    ChildProcess first(role(0)), second(role(1));
    for (int wait = 0; wait < 5000 && numbers_in(dir / "saved").size() == before; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 15000));
    EXPECT_EQ(first.kill(), -SIGKILL);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    EXPECT_EQ(second.kill(), -SIGKILL);

    TuningStore check;
    ASSERT_NO_THROW(check.load(dir / "t.json")) << "round " << round;
    for (const int number : numbers_in(dir / "saved"))
      ASSERT_EQ(check.lookup(key_of(number)), record_of(number)) << number << ", round " << round;
  }
  EXPECT_GE(numbers_in(dir / "saved").size(), static_cast<std::size_t>(kRounds));
  EXPECT_FALSE(fs::exists(dir / "t.json.bad"));
}

}  // namespace
}  // namespace netcl
