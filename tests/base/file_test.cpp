// The file habits: what is refused, what survives a failure in the middle, and who waits for whom.
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "base/interrupt.h"
#include "netcl/error.h"
#include "support/child_process.h"
#include "support/file_limit.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::ChildProcess;
using test::read_text;
using test::TempDir;
using test::write_text;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(ReadFile, GivesTheBytesUpToTheLimit) {
  const TempDir dir;
  for (const std::size_t size : {0, 1, 65535, 65536, 65537, 300000}) {
    const std::string text(size, 'x');
    write_text(dir / "f", text);
    EXPECT_EQ(text_of(read_file(dir / "f", size)), text);
    EXPECT_EQ(read_file(dir / "f", SIZE_MAX).size(), size);
    if (size > 0) {
      EXPECT_THROW(read_file(dir / "f", size - 1), FormatError);
    }
  }
}

TEST(ReadFile, RefusesWhatIsNoFile) {
  const TempDir dir;
  EXPECT_THROW(read_file(dir / "absent", 10), FileError);
  EXPECT_FALSE(read_file_if_exists(dir / "absent", 10));
  EXPECT_THROW(read_file(dir.path(), 10), FileError);
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_file(dir / "pipe", 10), FileError);  // and does not hang
  write_text(dir / "f", "x");
  EXPECT_THROW(read_file(dir / "f/below", 10), FileError);
}

TEST(WriteFile, ReplacesTheContentAndLeavesNothingElse) {
  const TempDir dir;
  write_file_atomic(dir / "f", bytes_of("one"));
  write_file_atomic(dir / "f", bytes_of("two"), 0600, Durable::no);
  EXPECT_EQ(read_text(dir / "f"), "two");
  EXPECT_EQ(mode_of(dir / "f"), 0600u);
  EXPECT_EQ(test::count_files(dir.path()), 1u);
}

TEST(WriteFile, ReplacesALinkInsteadOfFollowingIt) {
  const TempDir dir;
  write_text(dir / "target", "kept");
  fs::create_symlink(dir / "target", dir / "link");
  write_file_atomic(dir / "link", bytes_of("new"));
  EXPECT_EQ(read_text(dir / "target"), "kept");
  EXPECT_EQ(read_text(dir / "link"), "new");
  EXPECT_FALSE(fs::is_symlink(dir / "link"));
}

TEST(WriteFile, AFailureKeepsTheOldContentAndNamesThePath) {
  const TempDir dir;
  write_file_atomic(dir / "f", bytes_of("old"));
  try {
    const test::FileSizeLimit full(1000);
    write_file_atomic(dir / "f", bytes_of(std::string(5000, 'n')));
    FAIL() << "no error";
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find(dir / "f"), std::string::npos) << error.what();
  }
  EXPECT_EQ(read_text(dir / "f"), "old");
  EXPECT_EQ(test::count_files(dir.path()), 1u);

  EXPECT_THROW(write_file_atomic(dir / "absent/f", bytes_of("x")), FileError);
  EXPECT_THROW(write_file_atomic(dir / "f/g", bytes_of("x")), FileError);
  fs::create_directories(dir / "sub/full");
  EXPECT_THROW(write_file_atomic(dir / "sub", bytes_of("x")), FileError);  // a directory is there
  EXPECT_EQ(test::count_files(dir.path()), 2u);
}

TEST(WriteFile, ReadersSeeOneVersionOrTheOther) {
  const TempDir dir;
  const auto path = dir / "f";
  const std::string versions[] = {std::string(100'000, 'a'), std::string(150'000, 'b')};
  write_file_atomic(path, bytes_of(versions[0]), 0600, Durable::no);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i)
      write_file_atomic(path, bytes_of(versions[i % 2]), 0600, Durable::no);
  });
  int seen[2] = {};
  for (int i = 0; i < 20000 && (i < 500 || seen[0] == 0 || seen[1] == 0); ++i) {
    const auto text = text_of(read_file(path, 1 << 20));
    const int version = text == versions[0] ? 0 : text == versions[1] ? 1 : -1;
    if (version < 0) {
      ADD_FAILURE() << "a part was read: " << text.size() << " bytes";
      break;
    }
    ++seen[version];
  }
  stop = true;
  writer.join();
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[1], 0);
}

TEST(PrivateDirectory, IsMadeWithItsParents) {
  const TempDir dir;
  EXPECT_EQ(ensure_private_directory(dir / "a/b/c"), "");
  EXPECT_EQ(ensure_private_directory(dir / "a/b/c/"), "");
  EXPECT_EQ(mode_of(dir / "a"), 0700u);
  EXPECT_EQ(mode_of(dir / "a/b/c"), 0700u);
}

TEST(PrivateDirectory, RefusesWhatOthersMayHaveFilled) {
  const TempDir dir;
  const auto refused = [](const std::string& path, const std::string& why) {
    const auto reason = ensure_private_directory(path);
    EXPECT_NE(reason.find(why), std::string::npos) << path << ": \"" << reason << "\"";
  };
  write_text(dir / "file", "x");
  refused(dir / "file", "file or a symbolic link");
  refused(dir / "file/below", "creatable");
  fs::create_directory(dir / "real");
  ::chmod((dir / "real").c_str(), 0700);
  fs::create_symlink(dir / "real", dir / "link");
  refused(dir / "link", "file or a symbolic link");
  refused(dir / "link/", "file or a symbolic link");
  EXPECT_EQ(ensure_private_directory(dir / "link/below"), "");  // only the last part must be real
  for (const unsigned mode : {0720u, 0702u, 0777u, 01777u}) {
    ::chmod((dir / "real").c_str(), mode);
    refused(dir / "real", "others may write");
  }
  ::chmod((dir / "real").c_str(), 0755);
  EXPECT_EQ(ensure_private_directory(dir / "real"), "");
}

TEST(PrivateDirectory, RefusesAnotherOwner) {
  const TempDir dir;
  fs::create_directory(dir / "d");
  ::chmod((dir / "d").c_str(), 0700);
  if (::chown((dir / "d").c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  const auto reason = ensure_private_directory(dir / "d");
  EXPECT_NE(reason.find("belongs to user 12345"), std::string::npos) << reason;
}

TEST(Directory, StaysWithWhatItOpened) {
  const TempDir dir;
  const auto opened = Directory::make_private(dir / "d");
  fs::rename(dir / "d", dir / "moved");
  fs::create_directory(dir / "d");
  opened.write_atomic("f", bytes_of("x"));
  EXPECT_EQ(read_text(dir / "moved/f"), "x");
  EXPECT_EQ(test::count_files(dir / "d"), 0u);
  EXPECT_FALSE(Directory::open_private(dir / "absent"));
}

TEST(StaleTemporaries, OnlyThoseOfDeadWritersGo) {
  const TempDir dir;
  const std::string stale = ".netcl-0123456789abcdef.tmp", live = ".netcl-fedcba9876543210.tmp";
  for (const auto& name : {stale, live, std::string(".netcl-short.tmp"), std::string("x.tmp")})
    write_text(dir / name, "x");
  const Descriptor writer(::open((dir / live).c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
  EXPECT_EQ(remove_stale_temporaries(dir.path(), 60s), 0u);  // too young
  EXPECT_EQ(remove_stale_temporaries(dir.path(), 0s), 1u);
  EXPECT_FALSE(fs::exists(dir / stale));
  EXPECT_EQ(test::count_files(dir.path()), 3u);
  EXPECT_EQ(remove_stale_temporaries(dir / "absent", 0s), 0u);
}

TEST(StaleTemporaries, ThoseFromTheFutureGoToo) {
  const TempDir dir;
  write_text(dir / ".netcl-0123456789abcdef.tmp", "x");
  fs::last_write_time(dir / ".netcl-0123456789abcdef.tmp",
                      fs::file_time_type::clock::now() + std::chrono::hours(24 * 365));
  EXPECT_EQ(remove_stale_temporaries(dir.path(), 60s), 1u);
}

TEST(StaleTemporaries, AKilledWriterLeavesOnlyWhatTheyRemove) {
  if (const auto role = test::child_role()) {
    for (const std::string text(200'000, 'x');;) write_file_atomic(*role + "/f", bytes_of(text));
  }
  const TempDir dir;
  for (int i = 0; i < 10; ++i) {
    ChildProcess child(dir.path());
    for (int wait = 0; wait < 10'000 && !fs::exists(dir / "f"); ++wait)
      std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * i));
    child.kill();
  }
  remove_stale_temporaries(dir.path(), 0s);
  ASSERT_TRUE(fs::exists(dir / "f"));
  EXPECT_EQ(fs::file_size(dir / "f"), 200'000u);
  EXPECT_EQ(test::count_files(dir.path()), 1u);
}

TEST(FileLock, ExcludesThreads) {
  const TempDir dir;
  std::atomic<int> counter{0};  // read and written apart: without the lock increments get lost
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const FileLock lock(dir / "lock", 20s);
        const int before = counter.load();
        std::this_thread::yield();
        counter.store(before + 1);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 200);
}

TEST(FileLock, GivesUpAfterItsLimitAndIsFreeAfterwards) {
  const TempDir dir;
  {
    const FileLock held(dir / "lock", 0ms);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(FileLock(dir / "lock", 50ms), TimeoutError);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
    EXPECT_THROW(FileLock(dir / "lock", 0ms), TimeoutError);
  }
  EXPECT_NO_THROW(FileLock(dir / "lock", 0ms));
  EXPECT_THROW(FileLock(dir / "absent/lock", 0ms), FileError);
  fs::create_symlink(dir / "elsewhere", dir / "link");
  EXPECT_THROW(FileLock(dir / "link", 0ms), FileError);
}

TEST(FileLock, ANewFileUnderTheNameIsANewLock) {
  const TempDir dir;
  const FileLock held(dir / "lock", 0ms);
  fs::remove(dir / "lock");
  const FileLock other(dir / "lock", 0ms);
  EXPECT_THROW(FileLock(dir / "lock", 0ms), TimeoutError);
}

TEST(FileLock, WaitingCanBeInterrupted) {
  const TempDir dir;
  const FileLock held(dir / "lock", 0ms);
  int polls = 0;
  interrupt::set_poll_hook([&] {
    if (++polls == 3) throw Interrupted("test");
  });
  EXPECT_THROW(FileLock(dir / "lock", 20s), Interrupted);
  interrupt::set_poll_hook(nullptr);
  EXPECT_EQ(polls, 3);
}

}  // namespace
}  // namespace netcl
