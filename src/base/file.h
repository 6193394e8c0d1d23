// The file habits of the whole project: bounded reads, writes that are complete or absent, private
// directories, locks between processes. What is in the files is not known here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netcl {

// FormatError when larger than `max_bytes`; FileError when unreadable or not a regular file.
std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes);
// The same, but nothing for a file that is not there.
std::optional<std::vector<std::byte>> read_file_if_exists(const std::string& path,
                                                          std::size_t max_bytes);

// Whether a write also survives a power failure. `no` still survives the death of the process; for
// files that carry a checksum and can be made again.
enum class Durable { no, yes };

// Writes a temporary file beside `path` and renames it: readers see the old or the new content,
// never a part. A symbolic link at `path` is replaced, not followed. FileError on failure, which
// leaves `path` as it was and no temporary file. `mode` is subject to the umask.
void write_file_atomic(const std::string& path, std::span<const std::byte> bytes,
                       unsigned mode = 0600, Durable durable = Durable::yes);

// Makes the directory and its parents (0700 each). Returns "" when it is a real directory of this
// user that nobody else may write to, else the reason why it must not be trusted.
std::string ensure_private_directory(const std::string& path);

// "a" for "a/b", "." for "b".
std::string parent_directory(const std::string& path);

// Removes temporary files of writers that were killed. Those still being written hold a lock, and
// `min_age` covers the moment between creating and locking. Returns how many; never throws.
std::size_t remove_stale_temporaries(const std::string& directory,
                                     std::chrono::seconds min_age = std::chrono::seconds(60));

// An owned file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
  std::chrono::system_clock::time_point modified;
};

// Written before the clock was put back: its time says nothing about its age. Clocks of other
// machines may be ahead by less than an hour.
bool is_from_the_future(const FileInfo& file) noexcept;

// A directory held open: whoever renames or replaces its path afterwards cannot redirect us.
// Names are single components, relative to it.
class Directory {
 public:
  static Directory open(const std::string& path);  // FileError
  // Only what ensure_private_directory accepts, else FileError with the reason. A missing one is
  // made, or nothing is returned.
  static Directory make_private(const std::string& path);
  static std::optional<Directory> open_private(const std::string& path);

  // As the functions above.
  std::optional<std::vector<std::byte>> read(const std::string& name, std::size_t max_bytes) const;
  void write_atomic(const std::string& name, std::span<const std::byte> bytes, unsigned mode = 0600,
                    Durable durable = Durable::yes) const;
  std::size_t remove_stale_temporaries(std::chrono::seconds min_age) const noexcept;

  // The first bytes of a file, fewer when it is shorter; nothing when it cannot be read.
  std::optional<std::vector<std::byte>> read_head(const std::string& name, std::size_t bytes) const;
  bool remove(const std::string& name) const noexcept;  // whether it was there and is gone now
  void touch(const std::string& name) const noexcept;   // sets both times to now where it may
  std::vector<FileInfo> files() const;                  // regular files, in no particular order
  const std::string& path() const { return path_; }

 private:
  Directory(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  std::string full_name(const std::string& name) const { return path_ + "/" + name; }

  Descriptor fd_;
  std::string path_;  // for messages only
};

// An exclusive lock between processes and threads for as long as the object lives; the lock file
// stays. Waiting is interruptible; TimeoutError after `limit`, FileError when the file cannot be
// made. The system drops the lock of a process that dies.
class FileLock {
 public:
  FileLock(const std::string& path, std::chrono::milliseconds limit);
  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&&) = default;

 private:
  Descriptor fd_;
};

}  // namespace netcl
