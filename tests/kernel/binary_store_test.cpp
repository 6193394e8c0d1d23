// The program cache on disk: every kind of damage and disk trouble ends in a miss and at most one
// warning, never in a wrong program, an exception or a crash.
#include "kernel/binary_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "base/hash.h"
#include "netcl/error.h"
#include "support/child_process.h"
#include "support/file_limit.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;
using test::read_text;
using test::TempDir;
using test::write_text;

constexpr std::uint64_t kLarge = 64 << 20;

std::string key_of(int number) { return sha256_hex(std::to_string(number)); }

StoredProgram program_of(int number, std::size_t bytes = 100) {
  StoredProgram program{"kernel_" + std::to_string(number) + " on a device", "{\"n\": 1}", {}};
  std::mt19937 random(static_cast<unsigned>(number));
  program.binary.resize(bytes);
  for (auto& byte : program.binary) byte = static_cast<std::byte>(random());
  return program;
}

bool is_program(const std::optional<StoredProgram>& found, int number, std::size_t bytes = 100) {
  const auto expected = program_of(number, bytes);
  return found && found->description == expected.description &&
         found->metadata == expected.metadata && found->binary == expected.binary;
}

std::string entry_path(const BinaryStore& store, int number) {
  return store.directory() + "/" + key_of(number) + ".bin";
}

std::size_t warnings_in(const std::string& text) {
  std::size_t count = 0;
  for (auto at = text.find("warning:"); at != std::string::npos; at = text.find("warning:", at + 1))
    ++count;
  return count;
}

// Runs `use`, which must not throw, and returns what it printed.
template <class F>
std::string stderr_of(F&& use) {
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(use());
  return testing::internal::GetCapturedStderr();
}

TEST(BinaryStore, GivesBackWhatWasPut) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  EXPECT_FALSE(store.get(key_of(1)));
  store.put(key_of(1), program_of(1));
  store.put(key_of(2), program_of(2, 0));
  store.put(key_of(3), {});
  EXPECT_TRUE(is_program(store.get(key_of(1)), 1));
  EXPECT_TRUE(is_program(store.get(key_of(2)), 2, 0));
  EXPECT_TRUE(store.get(key_of(3)));
  EXPECT_TRUE(is_program(BinaryStore(dir.path(), kLarge).get(key_of(1)), 1));
  store.put(key_of(1), program_of(7));
  EXPECT_TRUE(is_program(store.get(key_of(1)), 7));
  store.remove(key_of(1));
  EXPECT_FALSE(store.get(key_of(1)));
}

TEST(BinaryStore, IsPrivate) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  store.put(key_of(1), program_of(1));
  struct stat status {};
  ASSERT_EQ(::stat(store.directory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  ASSERT_EQ(::stat(entry_path(store, 1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST(BinaryStore, AcceptsOnlyKeysThatCannotBePaths) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  for (const auto& key : {std::string(), std::string("abc"), std::string(64, 'g'),
                          std::string(64, 'A'), std::string(65, 'a'), "../" + std::string(61, 'a')})
    EXPECT_THROW(store.get(key), ArgumentError) << key;
}

TEST(BinaryStore, FindsEveryFlippedByte) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  store.put(key_of(1), program_of(1));
  const auto path = entry_path(store, 1);
  const auto good = read_text(path);
  const auto printed = stderr_of([&] {
    for (std::size_t at = 0; at < good.size(); ++at)
      for (const int flip : {0x01, 0x80, 0xff}) {
        auto bad = good;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        write_text(path, bad);
        ASSERT_FALSE(store.get(key_of(1))) << "byte " << at << " ^ " << flip;
        ASSERT_FALSE(fs::exists(path)) << "byte " << at;
      }
  });
  EXPECT_EQ(warnings_in(printed), 1u) << printed;
  write_text(path, good);
  EXPECT_TRUE(is_program(store.get(key_of(1)), 1));
}

TEST(BinaryStore, FindsEveryCutAndEveryAddition) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  store.put(key_of(1), program_of(1));
  const auto path = entry_path(store, 1);
  const auto good = read_text(path);
  const auto printed = stderr_of([&] {
    for (std::size_t size = 0; size < good.size(); ++size) {
      write_text(path, good.substr(0, size));
      ASSERT_FALSE(store.get(key_of(1))) << size << " of " << good.size() << " bytes";
    }
    for (const std::size_t more : {1, 32, 4096}) {
      write_text(path, good + std::string(more, '\0'));
      ASSERT_FALSE(store.get(key_of(1))) << more << " bytes too many";
    }
  });
  EXPECT_EQ(warnings_in(printed), 1u) << printed;
}

TEST(BinaryStore, FindsSwappedEntries) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  store.put(key_of(1), program_of(1));
  store.put(key_of(2), program_of(2));
  fs::rename(entry_path(store, 1), dir / "aside");
  fs::rename(entry_path(store, 2), entry_path(store, 1));
  fs::rename(dir / "aside", entry_path(store, 2));
  stderr_of([&] {
    EXPECT_FALSE(store.get(key_of(1)));
    EXPECT_FALSE(store.get(key_of(2)));
  });
}

// An entry with other lengths, under a checksum that is right.
std::vector<std::byte> with_lengths(std::vector<std::byte> file,
                                    const std::array<std::uint64_t, 3>& lengths) {
  file.resize(file.size() - sizeof(Sha256Digest));
  for (std::size_t i = 0; i < 24; ++i)
    file[8 + 4 + 64 + i] = static_cast<std::byte>(lengths[i / 8] >> (8 * (i % 8)));
  const auto digest = Sha256().update(file).digest();
  file.insert(file.end(), digest.begin(), digest.end());
  return file;
}

TEST(BinaryStore, LengthsAreCheckedEvenUnderAValidChecksum) {
  const auto program = program_of(1);
  const auto file = encode_entry(key_of(1), program);
  const std::array<std::uint64_t, 3> good{program.description.size(), program.metadata.size(),
                                          program.binary.size()};
  EXPECT_EQ(decode_entry(key_of(1), with_lengths(file, good)).binary, program.binary);
  for (std::size_t field = 0; field < 3; ++field)
    for (const auto value : {std::uint64_t{0}, std::uint64_t{1'000}, UINT64_MAX, UINT64_MAX / 2}) {
      auto bad = good;
      bad[field] = value;
      EXPECT_THROW(decode_entry(key_of(1), with_lengths(file, bad)), FormatError) << value;
    }
  // The sum is right only because it wraps.
  const auto total = good[0] + good[1] + good[2];
  for (const auto& bad : {std::array<std::uint64_t, 3>{UINT64_MAX, total + 1, 0},
                          std::array<std::uint64_t, 3>{0, UINT64_MAX - 9, total + 10}})
    EXPECT_THROW(decode_entry(key_of(1), with_lengths(file, bad)), FormatError) << bad[0];
}

// Puts and gets in a directory that cannot serve: one warning, misses, and no exception.
void expect_works_without_disk(const std::string& directory) {
  BinaryStore store(directory, kLarge);
  const auto printed = stderr_of([&] {
    for (int i = 0; i < 3; ++i) {
      store.put(key_of(i), program_of(i));
      EXPECT_FALSE(store.get(key_of(i)));
    }
  });
  EXPECT_EQ(warnings_in(printed), 1u) << printed;
  EXPECT_NE(printed.find(directory), std::string::npos) << printed;
}

TEST(BinaryStore, WorksWithoutADirectory) {
  const TempDir dir;
  write_text(dir / "file", "x");
  expect_works_without_disk(dir / "file");
  fs::create_directory(dir / "occupied");
  write_text(dir / "occupied/programs", "x");
  expect_works_without_disk(dir / "occupied");
}

TEST(BinaryStore, DoesNotTrustALinkOrOthersDirectories) {
  const TempDir dir;
  BinaryStore(dir / "real", kLarge).put(key_of(0), program_of(0));
  fs::create_directory(dir / "linked");
  fs::create_directory_symlink(dir / "real/programs", dir / "linked/programs");
  expect_works_without_disk(dir / "linked");
  ::chmod((dir / "real/programs").c_str(), 0770);
  expect_works_without_disk(dir / "real");
  EXPECT_THROW(BinaryStore(dir / "real", kLarge).list(), FileError);
}

TEST(BinaryStore, DoesNotTrustAnotherOwner) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  store.put(key_of(0), program_of(0));
  if (::chown(store.directory().c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  expect_works_without_disk(dir.path());
  EXPECT_TRUE(fs::exists(entry_path(store, 0)));
}

TEST(BinaryStore, AFullDiskKeepsWhatIsThere) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  store.put(key_of(1), program_of(1));
  const auto printed = stderr_of([&] {
    const test::FileSizeLimit full(4096);
    for (int i = 2; i < 5; ++i) store.put(key_of(i), program_of(i, 100'000));
  });
  EXPECT_EQ(warnings_in(printed), 1u) << printed;
  EXPECT_EQ(test::count_files(store.directory()), 1u);  // no halves, no temporaries
  EXPECT_TRUE(is_program(store.get(key_of(1)), 1));
  store.put(key_of(2), program_of(2, 100'000));  // there is room again
  EXPECT_TRUE(is_program(store.get(key_of(2)), 2, 100'000));
}

TEST(BinaryStore, AVanishedDirectoryIsMadeAgain) {
  const TempDir dir;
  BinaryStore store(dir / "cache", kLarge);
  const auto printed = stderr_of([&] {
    for (int i = 0; i < 3; ++i) {
      store.put(key_of(i), program_of(i));
      EXPECT_TRUE(is_program(store.get(key_of(i)), i));
      fs::remove_all(dir / "cache");
      EXPECT_FALSE(store.get(key_of(i)));
    }
  });
  EXPECT_EQ(printed, "");
}

void make_older(const BinaryStore& store, int number, int seconds) {
  const auto path = entry_path(store, number);
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::seconds(seconds));
}

TEST(BinaryStore, EvictsTheLeastRecentlyUsed) {
  const TempDir dir;
  BinaryStore store(dir.path(), 100'000);
  for (int i = 0; i < 9; ++i) {
    store.put(key_of(i), program_of(i, 10'000));
    make_older(store, i, 1000 - i);
  }
  EXPECT_TRUE(store.get(key_of(0)));  // the oldest becomes the newest
  store.put(key_of(9), program_of(9, 10'000));
  for (const int kept : {0, 3, 4, 5, 6, 7, 8, 9}) EXPECT_TRUE(store.get(key_of(kept))) << kept;
  for (const int gone : {1, 2}) EXPECT_FALSE(store.get(key_of(gone))) << gone;
  store.put(key_of(10), program_of(10, 200'000));  // never fits, and pushes nobody out
  EXPECT_FALSE(store.get(key_of(10)));
  EXPECT_TRUE(store.get(key_of(9)));
}

// The clock was put back by ten years, or forward: entries are found, and the old ones make room.
TEST(BinaryStore, ClockJumpsDoNotFreezeIt) {
  for (const int seconds : {-315'000'000, 315'000'000}) {
    const TempDir dir;
    BinaryStore store(dir.path(), 100'000);
    for (int i = 0; i < 9; ++i) {
      store.put(key_of(i), program_of(i, 10'000));
      make_older(store, i, seconds + i);
    }
    EXPECT_TRUE(is_program(store.get(key_of(3)), 3, 10'000));
    for (int i = 9; i < 30; ++i) {
      store.put(key_of(i), program_of(i, 10'000));
      EXPECT_TRUE(is_program(store.get(key_of(i)), i, 10'000)) << i;
    }
    EXPECT_FALSE(store.get(key_of(8)));
    EXPECT_LE(store.verify().bytes, 100'000u);
  }
}

TEST(BinaryStore, ListsVerifiesAndClears) {
  const TempDir dir;
  const test::ScopedEnv directory("NETCL_CACHE_DIR", dir.path().c_str());
  EXPECT_TRUE(program_cache_list().empty());
  auto* store = default_binary_store();
  ASSERT_NE(store, nullptr);
  for (int i = 0; i < 4; ++i) {
    auto program = program_of(i);
    program.description += "\x1b[31m\n";
    store->put(key_of(i), program);
    make_older(*store, i, 100 * i);
  }
  write_text(store->directory() + "/notes.txt", "not an entry");
  write_text(entry_path(*store, 2), "garbage");
  make_older(*store, 2, 200);
  const auto list = program_cache_list();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].key, key_of(0));  // the newest first
  EXPECT_EQ(list[0].description, "kernel_0 on a device?[31m?");
  EXPECT_EQ(list[0].bytes, fs::file_size(entry_path(*store, 0)));
  EXPECT_LT(std::chrono::system_clock::now() - list[0].last_used, std::chrono::minutes(1));
  EXPECT_EQ(list[2].description, "(damaged)");

  const auto verified = program_cache_verify();
  EXPECT_EQ(verified.good, 3u);
  EXPECT_EQ(verified.bad, 1u);
  EXPECT_EQ(verified.bytes, 3 * list[0].bytes);
  EXPECT_EQ(program_cache_verify().bad, 0u);
  EXPECT_EQ(program_cache_clear(), 3u);
  EXPECT_TRUE(program_cache_list().empty());
  EXPECT_TRUE(fs::exists(store->directory() + "/notes.txt"));
}

TEST(BinaryStore, TheDefaultFollowsTheEnvironment) {
  const TempDir a, b;
  const test::ScopedEnv first("NETCL_CACHE_DIR", a.path().c_str());
  auto* store = default_binary_store();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store, default_binary_store());
  const test::ScopedEnv second("NETCL_CACHE_DIR", b.path().c_str());
  ASSERT_NE(default_binary_store(), nullptr);
  EXPECT_NE(store, default_binary_store());
  for (const char* none : {"0", "-5"}) {
    const test::ScopedEnv off("NETCL_CACHE_MB", none);
    EXPECT_EQ(default_binary_store(), nullptr);
  }
}

// One of four processes: puts and gets at random in a cache that is too small for all entries.
void use_small_cache(const std::string& role) {
  const auto directory = role.substr(1);
  BinaryStore store(directory, 60'000);
  std::mt19937 random(static_cast<unsigned>(role[0]));
  int hits = 0;
  for (int i = 0; i < 400; ++i) {
    const int number = static_cast<int>(random() % 12);
    const std::size_t bytes = 5000 + 500 * static_cast<std::size_t>(number);
    if (const auto found = store.get(key_of(number))) {
      ASSERT_TRUE(is_program(found, number, bytes)) << number;
      ++hits;
    } else {
      store.put(key_of(number), program_of(number, bytes));
    }
  }
  EXPECT_GT(hits, 20);
}

TEST(BinaryStore, FourProcessesShareOneDirectory) {
  if (const auto role = test::child_role()) return use_small_cache(*role);
  const TempDir dir;
  {
    test::ChildProcess a("a" + dir.path().string()), b("b" + dir.path().string()),
        c("c" + dir.path().string()), d("d" + dir.path().string());
    for (auto* child : {&a, &b, &c, &d}) EXPECT_EQ(child->wait(), 0);
  }
  BinaryStore store(dir.path(), 60'000);
  store.put(key_of(0), program_of(0, 5000));
  const auto verified = store.verify();
  EXPECT_EQ(verified.bad, 0u);
  EXPECT_GT(verified.good, 3u);
  EXPECT_LE(verified.bytes, 60'000u);
}

TEST(BinaryStore, ThreadsShareOneStore) {
  const TempDir dir;
  BinaryStore store(dir.path(), kLarge);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        store.put(key_of(i % 5), program_of(i % 5));
        if (!is_program(store.get(key_of(i % 5)), i % 5)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace netcl
