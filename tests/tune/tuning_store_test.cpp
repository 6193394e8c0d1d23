// The tuning store: what is found again, what is retired, and what many processes and kill -9
// leave.
#include "netcl/tuning_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "netcl/error.h"
#include "support/child_process.h"
#include "support/file_limit.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"
#include "tune/sample_records.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;
using test::ChildProcess;
using test::key_of;
using test::kInfinity;
using test::read_text;
using test::record_of;
using test::TempDir;
using test::write_text;

template <class F>
std::string stderr_of(F&& use) {
  testing::internal::CaptureStderr();
  use();
  return testing::internal::GetCapturedStderr();
}

TEST(TuningStore, FindsExactlyWhatWasRecorded) {
  TuningStore store;
  EXPECT_FALSE(store.lookup(key_of(1)));
  store.record(key_of(1), record_of(1));
  EXPECT_EQ(store.lookup(key_of(1)), record_of(1));
  EXPECT_EQ(*store.find(key_of(1)), record_of(1));
  store.record(key_of(1), record_of(5));
  EXPECT_EQ(store.lookup(key_of(1)), record_of(5));
  EXPECT_EQ(store.size(), 1u);
}

TEST(TuningStore, EveryPartOfTheKeyCounts) {
  TuningStore store;
  store.record(key_of(1), record_of(1));
  auto other = std::vector<TuningKey>(7, key_of(1));
  other[0].device += "x";
  other[1].driver += "x";
  other[2].kernel += "x";
  other[3].source_hash += "x";
  other[4].dtypes = "float16";
  other[5].global_size = {256};
  other[6].global_size = {1, 256};
  for (const auto& key : other) EXPECT_FALSE(store.lookup(key)) << key.to_string();
}

TEST(TuningStore, SurvivesTheFileBitForBit) {
  const TempDir dir;
  TuningStore store(dir / "t.json");
  for (int i = 0; i < 20; ++i) store.record(key_of(i), record_of(i));
  auto odd = key_of(99);
  odd.device = "quo\"te \\ \n \xc3\xa9 \x01";
  odd.global_size = {};
  TuningRecord extremes = record_of(1);
  extremes.parameters = {{"A", std::numeric_limits<std::int64_t>::min()},
                         {"B", std::numeric_limits<std::int64_t>::max()}};
  extremes.local_size = {};
  extremes.runtime_us = 0x1.fffffffffffffp-3;
  store.record(odd, extremes);
  store.save();
  EXPECT_EQ(TuningStore(dir / "t.json").entries(), store.entries());
  EXPECT_EQ(store.size(), 21u);
}

TEST(TuningStore, NamesThatAreNotUtf8AreFoundAgain) {
  const TempDir dir;
  auto key = key_of(1);
  key.device = "Old Driver\xae GPU";
  TuningStore store(dir / "t.json");
  store.record(key, record_of(1));
  store.record(key, record_of(2));
  EXPECT_EQ(store.lookup(key), record_of(2));
  store.save();
  TuningStore again(dir / "t.json");
  EXPECT_EQ(again.lookup(key), record_of(2));
  again.record(key, record_of(3));
  again.save();
  EXPECT_EQ(TuningStore(dir / "t.json").size(), 1u);
}

TEST(TuningStore, RefusesRecordsThatNoFileCouldHold) {
  TuningStore store;
  const auto refused = [&](auto&& change) {
    auto key = key_of(1);
    auto record = record_of(1);
    change(key, record);
    EXPECT_THROW(store.record(key, record), ArgumentError);
  };
  refused([](auto&, auto& r) { r.runtime_us = std::nan(""); });
  refused([](auto&, auto& r) { r.runtime_us = kInfinity; });
  refused([](auto&, auto& r) { r.default_us = -1; });
  refused([](auto&, auto& r) { r.candidates[0].runtime_us = std::nan(""); });
  refused([](auto&, auto& r) { r.local_size = {0}; });
  refused([](auto&, auto& r) { r.local_size = {1, 1, 1, 1}; });
  refused([](auto&, auto& r) { r.local_size = {SIZE_MAX}; });
  refused([](auto&, auto& r) { r.parameters = {{"X=1 -DY", 1}}; });
  refused([](auto&, auto& r) { r.parameters = {{"", 1}}; });
  refused([](auto& k, auto&) { k.global_size.assign(17, 1); });
  refused([](auto& k, auto&) { k.kernel.assign(5000, 'k'); });
  EXPECT_EQ(store.size(), 0u);
}

TEST(TuningStore, AChangedSourceRetiresItsOwnEntriesOnly) {
  const TempDir dir;
  auto half = key_of(1), elsewhere = key_of(1);
  half.dtypes = "float16";
  elsewhere.device = "Another Device";
  TuningStore store(dir / "t.json");
  for (const auto& key : {key_of(1), key_of(2), half, elsewhere}) store.record(key, record_of(1));
  store.save();

  TuningStore newer(dir / "t.json");
  newer.record(key_of(3, "hash-b"), record_of(3));
  EXPECT_FALSE(newer.lookup(key_of(1)));
  newer.save();
  const TuningStore after(dir / "t.json");
  EXPECT_FALSE(after.lookup(key_of(1)));
  EXPECT_FALSE(after.lookup(key_of(2)));
  EXPECT_TRUE(after.lookup(key_of(3, "hash-b")));
  EXPECT_TRUE(after.lookup(half));
  EXPECT_TRUE(after.lookup(elsewhere));

  // The process that still knows the retired entries does not bring them back.
  auto another = key_of(8);
  another.kernel = "conv2d";
  store.record(another, record_of(8));
  store.save();
  EXPECT_FALSE(TuningStore(dir / "t.json").lookup(key_of(1)));
  EXPECT_TRUE(TuningStore(dir / "t.json").lookup(another));
  EXPECT_TRUE(store.lookup(key_of(3, "hash-b")));  // and has seen the new ones
}

TEST(TuningStore, AFileFromAnotherDeviceIsKeptButNotApplied) {
  const TempDir dir;
  TuningStore theirs;
  auto key = key_of(1);
  key.device = "Their Device";
  theirs.record(key, record_of(1));
  theirs.save(dir / "theirs.json");

  TuningStore ours(dir / "ours.json");
  ours.load(dir / "theirs.json");
  EXPECT_FALSE(ours.lookup(key_of(1)));
  EXPECT_TRUE(ours.lookup(key));
  ours.save();
  EXPECT_TRUE(TuningStore(dir / "ours.json").lookup(key));
}

TEST(TuningStore, LoadReplacesEqualKeysAndRetiresNothing) {
  const TempDir dir;
  TuningStore file;
  file.record(key_of(1), record_of(10));
  file.save(dir / "f.json");
  TuningStore store(dir / "own.json");
  store.record(key_of(2, "hash-b"), record_of(2));
  store.save();
  store.load(dir / "f.json");
  EXPECT_EQ(store.lookup(key_of(1)), record_of(10));
  store.save();
  EXPECT_EQ(TuningStore(dir / "own.json").size(), 2u);
  EXPECT_THROW(store.load(dir / "absent.json"), FileError);
}

TEST(TuningStore, SavesOfTwoStoresAreMerged) {
  const TempDir dir;
  TuningStore a(dir / "t.json"), b(dir / "t.json");
  a.record(key_of(1), record_of(1));
  b.record(key_of(2), record_of(2));
  b.record(key_of(1), record_of(7));
  a.save();
  b.save();  // the later save of the same key wins
  EXPECT_EQ(TuningStore(dir / "t.json").size(), 2u);
  EXPECT_EQ(TuningStore(dir / "t.json").lookup(key_of(1)), record_of(7));
  a.record(key_of(3), record_of(3));
  a.save();  // has nothing new for 1, and takes over the others'
  EXPECT_EQ(a.lookup(key_of(1)), record_of(7));
  EXPECT_EQ(a.lookup(key_of(2)), record_of(2));
  EXPECT_EQ(TuningStore(dir / "t.json").lookup(key_of(1)), record_of(7));
}

TEST(TuningStore, ClearAlsoEmptiesTheFileAtTheNextSave) {
  const TempDir dir;
  TuningStore store(dir / "t.json");
  store.record(key_of(1), record_of(1));
  store.save();
  TuningStore second(dir / "t.json");
  second.clear();
  EXPECT_FALSE(second.lookup(key_of(1)));
  EXPECT_EQ(TuningStore(dir / "t.json").size(), 1u);
  second.record(key_of(2), record_of(2));
  second.save();
  EXPECT_EQ(TuningStore(dir / "t.json").size(), 1u);
  EXPECT_TRUE(TuningStore(dir / "t.json").lookup(key_of(2)));
  second.record(key_of(3), record_of(3));
  second.save();  // merges again
  EXPECT_EQ(TuningStore(dir / "t.json").size(), 2u);
}

TEST(TuningStore, AMalformedOwnFileIsMovedAsideWithOneWarning) {
  const TempDir dir;
  const auto path = dir / "t.json";
  write_text(path, "{\"format\": ");
  TuningStore store(path);
  const auto printed = stderr_of([&] {
    EXPECT_FALSE(store.lookup(key_of(1)));
    EXPECT_FALSE(store.lookup(key_of(2)));
    store.record(key_of(1), record_of(1));
    store.save();
  });
  EXPECT_NE(printed.find("t.json.bad"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("warning:"), printed.rfind("warning:")) << printed;
  EXPECT_EQ(read_text(path + ".bad"), "{\"format\": ");
  EXPECT_EQ(TuningStore(path).size(), 1u);

  write_text(path, "damaged while we run");
  store.record(key_of(2), record_of(2));
  stderr_of([&] { store.save(); });
  EXPECT_EQ(read_text(path + ".bad"), "damaged while we run");
  EXPECT_TRUE(TuningStore(path).lookup(key_of(2)));

  write_text(dir / "else.json", "somebody's notes");
  EXPECT_THROW(store.save(dir / "else.json"), FormatError);
  EXPECT_EQ(read_text(dir / "else.json"), "somebody's notes");
}

TEST(TuningStore, TroubleWithTheDiskIsAnErrorOrOneWarning) {
  const TempDir dir;
  TuningStore nowhere, store(dir / "absent/t.json");
  nowhere.record(key_of(1), record_of(1));
  store.record(key_of(1), record_of(1));
  EXPECT_THROW(nowhere.save(), FileError);
  EXPECT_THROW(store.save(), FileError);
  const auto printed = stderr_of([&] {
    store.save_quietly();
    store.save_quietly();
  });
  EXPECT_NE(printed.find("warning:"), std::string::npos);
  EXPECT_EQ(printed.find("warning:"), printed.rfind("warning:")) << printed;
  EXPECT_TRUE(store.lookup(key_of(1)));
  fs::create_directory(dir / "absent");
  store.save();  // nothing was lost
  EXPECT_EQ(TuningStore(dir / "absent/t.json").size(), 1u);

  const auto before = read_text(dir / "absent/t.json");
  for (int i = 0; i < 30; ++i) store.record(key_of(i), record_of(i));
  {
    const test::FileSizeLimit full(4096);
    EXPECT_THROW(store.save(), FileError);
  }
  EXPECT_EQ(read_text(dir / "absent/t.json"), before);
  store.save();
  EXPECT_EQ(TuningStore(dir / "absent/t.json").size(), 30u);
}

// In a process of its own, because the default store looks at the environment once.
TEST(TuningStore, TheDefaultIsInTheCacheDirectory) {
  if (const auto role = test::child_role()) {
    EXPECT_EQ(default_tuning_store().path(), *role);
    default_tuning_store().record(key_of(1), record_of(1));
    return default_tuning_store().save();
  }
  const TempDir dir;
  {
    const test::ScopedEnv cache("NETCL_CACHE_DIR", (dir / "cache").c_str());
    EXPECT_EQ(ChildProcess(dir / "cache/tuning.json").wait(), 0);
    const test::ScopedEnv file("NETCL_TUNING_FILE", (dir / "mine.json").c_str());
    EXPECT_EQ(ChildProcess(dir / "mine.json").wait(), 0);
  }
  struct stat status {};
  ASSERT_EQ(::stat((dir / "cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(TuningStore(dir / "cache/tuning.json").size(), 1u);
  EXPECT_EQ(TuningStore(dir / "mine.json").size(), 1u);
}

TEST(TuningStore, ThreadsLookUpWhileOthersRecordAndSave) {
  const TempDir dir;
  TuningStore store(dir / "t.json");
  store.record(key_of(0), record_of(0));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop)
        if (store.lookup(key_of(0)) != record_of(0)) ++wrong;
    });
  for (int i = 1; i < 60; ++i) {
    store.record(key_of(i), record_of(i));
    if (i % 10 == 0) store.save();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  store.save();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(TuningStore(dir / "t.json").size(), 60u);
}

}  // namespace
}  // namespace netcl
