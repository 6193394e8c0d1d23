// Files by the rules of file.h, over POSIX calls: the standard library has no O_EXCL, fsync or
// flock.
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/file_detail.h"
#include "base/interrupt.h"

namespace netcl {
namespace {

constexpr std::string_view kTemporaryPrefix = ".netcl-";
constexpr std::string_view kTemporarySuffix = ".tmp";

}  // namespace

namespace file_detail {

std::string reason(int code) { return std::generic_category().message(code); }

void fail_errno(const char* rule, const std::string& path) {
  const int code = errno;
  fail<FileError>("[file] {}: {}: {}", rule, path, reason(code));
}

std::pair<std::string, std::string> split_path(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Descriptor open_regular(int directory, const std::string& name, const std::string& path) {
  Descriptor fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    if (errno == ENOENT) return fd;
    fail_errno("the file must be readable", path);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_errno("the file must be readable", path);
  check<FileError>(S_ISREG(status.st_mode), "[file] a regular file is needed: {}", path);
  return fd;
}

bool is_temporary_name(std::string_view name) {
  return name.size() == kTemporaryPrefix.size() + 16 + kTemporarySuffix.size() &&
         name.starts_with(kTemporaryPrefix) && name.ends_with(kTemporarySuffix);
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const auto put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_errno("the file must be writable", path);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

Temporary::Temporary(int directory, unsigned mode, const std::string& target)
    : directory_(directory) {
  std::random_device random;
  do {
    const auto number = (std::uint64_t{random()} << 32) | random();
    name_ = fmt::format("{}{:016x}{}", kTemporaryPrefix, number, kTemporarySuffix);
    fd_ = Descriptor(::openat(directory, name_.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  } while (!fd_ && errno == EEXIST);
  if (!fd_) {
    name_.clear();
    fail_errno("the directory must be writable to replace the file", target);
  }
  // Tells remove_stale_temporaries that its writer lives. File systems without locks refuse this,
  // and then also refuse it there.
  ::flock(fd_.get(), LOCK_EX | LOCK_NB);
}

Temporary::~Temporary() {
  if (!name_.empty()) ::unlinkat(directory_, name_.c_str(), 0);
}

void Temporary::rename_to(const std::string& name, const std::string& path, Durable durable) {
  const bool sync = durable == Durable::yes;
  if (sync && ::fsync(fd_.get()) != 0) fail_errno("the content must reach the disk", path);
  if (::renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0)
    fail_errno("the file must be replaceable", path);
  name_.clear();
  // Some file systems cannot sync a directory; the content itself is safe by now.
  if (sync && ::fsync(directory_) != 0 && errno != EINVAL && errno != EROFS)
    fail_errno("the new name must reach the disk", path);
}

}  // namespace file_detail

using namespace file_detail;

namespace {

// Up to `limit` bytes. The size is not asked for first: the file may grow while it is read.
std::vector<std::byte> read_up_to(int fd, std::size_t limit, const std::string& path) {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  std::vector<std::byte> bytes;
  std::size_t used = 0;
  while (used < limit) {
    bytes.resize(std::min(limit, std::max(used + kChunk, used * 2)));
    const auto got = ::read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("the file must be readable", path);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

std::optional<std::vector<std::byte>> read_at(int directory, const std::string& name,
                                              std::size_t max_bytes, const std::string& path) {
  const auto fd = open_regular(directory, name, path);
  if (!fd) return std::nullopt;
  // One more than allowed, to see that there is more.
  auto bytes = read_up_to(fd.get(), max_bytes + (max_bytes < SIZE_MAX ? 1 : 0), path);
  check<FormatError>(bytes.size() <= max_bytes, "[file] at most {} bytes are read: {} has more",
                     max_bytes, path);
  return bytes;
}

// Returns errno, or 0.
int make_directories(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return 0;
  const int code = errno;
  const auto parent = split_path(path).first;
  if (code != ENOENT || parent == path) return code;
  if (const int above = make_directories(parent); above != 0) return above;
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

// "" when only we can have put anything into the directory.
std::string distrust(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return reason(errno);
  if (status.st_uid != ::geteuid())
    return fmt::format("it belongs to user {}, not to {}", status.st_uid, ::geteuid());
  if ((status.st_mode & 022) != 0)
    return fmt::format("others may write to it (mode {:o}); chmod 700 or remove it",
                       static_cast<unsigned>(status.st_mode & 07777));
  return {};
}

// A trailing slash would make O_NOFOLLOW follow.
std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Descriptor open_trusted(const std::string& given) {
  const auto path = without_trailing_slash(given);
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT) return fd;
    const auto why =
        errno == ENOTDIR || errno == ELOOP ? "it is a file or a symbolic link" : reason(errno);
    fail<FileError>("[file] a private directory is needed: {}: {}", path, why);
  }
  const auto why = distrust(fd.get());
  check<FileError>(why.empty(), "[file] a private directory is needed: {}: {}", path, why);
  return fd;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::vector<std::byte>> read_file_if_exists(const std::string& path,
                                                          std::size_t max_bytes) {
  return read_at(AT_FDCWD, path, max_bytes, path);
}

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes) {
  auto bytes = read_file_if_exists(path, max_bytes);
  check<FileError>(bytes.has_value(), "[file] the file must exist: {}", path);
  return std::move(*bytes);
}

void write_file_atomic(const std::string& path, std::span<const std::byte> bytes, unsigned mode,
                       Durable durable) {
  const auto [parent, name] = split_path(path);
  Directory::open(parent).write_atomic(name, bytes, mode, durable);
}

std::string parent_directory(const std::string& path) { return split_path(path).first; }

std::string ensure_private_directory(const std::string& path) {
  try {
    Directory::make_private(path);
    return {};
  } catch (const FileError& error) {
    return error.what();
  }
}

std::size_t remove_stale_temporaries(const std::string& directory, std::chrono::seconds min_age) {
  try {
    return Directory::open(directory).remove_stale_temporaries(min_age);
  } catch (const FileError&) {
    return 0;
  }
}

Directory Directory::open(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_errno("the directory must be readable", path);
  return {std::move(fd), path};
}

Directory Directory::make_private(const std::string& path) {
  const int code = make_directories(without_trailing_slash(path));
  check<FileError>(code == 0, "[file] the directory must be creatable: {}: {}", path, reason(code));
  auto directory = open_private(path);
  check<FileError>(directory.has_value(), "[file] the directory was removed meanwhile: {}", path);
  return std::move(*directory);
}

std::optional<Directory> Directory::open_private(const std::string& path) {
  auto fd = open_trusted(path);
  if (!fd) return std::nullopt;
  return Directory(std::move(fd), path);
}

std::optional<std::vector<std::byte>> Directory::read(const std::string& name,
                                                      std::size_t max_bytes) const {
  return read_at(fd_.get(), name, max_bytes, full_name(name));
}

std::optional<std::vector<std::byte>> Directory::read_head(const std::string& name,
                                                           std::size_t bytes) const {
  try {
    const auto fd = open_regular(fd_.get(), name, full_name(name));
    if (!fd) return std::nullopt;
    return read_up_to(fd.get(), bytes, full_name(name));
  } catch (const FileError&) {
    return std::nullopt;
  }
}

void Directory::write_atomic(const std::string& name, std::span<const std::byte> bytes,
                             unsigned mode, Durable durable) const {
  const auto path = full_name(name);
  Temporary file(fd_.get(), mode, path);
  write_all(file.fd(), bytes, path);
  file.rename_to(name, path, durable);
}

bool Directory::remove(const std::string& name) const noexcept {
  return ::unlinkat(fd_.get(), name.c_str(), 0) == 0;
}

void Directory::touch(const std::string& name) const noexcept {
  ::utimensat(fd_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

std::vector<FileInfo> Directory::files() const {
  // "." opened anew, because a stream takes over its descriptor and the position within it.
  const int copy = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) fail_errno("the directory must be readable", path_);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
  if (!stream) fail_errno("the directory must be readable", path_);
  std::vector<FileInfo> result;
  while (const dirent* entry = ::readdir(stream.get())) {
    struct stat status {};
    // A failure means that another process removed it in between.
    if (::fstatat(fd_.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    const auto since_epoch = std::chrono::seconds(status.st_mtim.tv_sec) +
                             std::chrono::nanoseconds(status.st_mtim.tv_nsec);
    using Clock = std::chrono::system_clock;
    result.push_back({entry->d_name, static_cast<std::uint64_t>(status.st_size),
                      Clock::time_point(std::chrono::duration_cast<Clock::duration>(since_epoch))});
  }
  return result;
}

bool is_from_the_future(const FileInfo& file) noexcept {
  return file.modified > std::chrono::system_clock::now() + std::chrono::hours(1);
}

std::size_t Directory::remove_stale_temporaries(std::chrono::seconds min_age) const noexcept {
  std::size_t removed = 0;
  try {
    const auto newest = std::chrono::system_clock::now() - min_age;
    for (const auto& file : files()) {
      const bool is_young = file.modified > newest && !is_from_the_future(file);
      if (!is_temporary_name(file.name) || is_young) continue;
      const auto fd = open_regular(fd_.get(), file.name, file.name);
      if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) removed += remove(file.name) ? 1 : 0;
    }
  } catch (...) {
    // Tidying up is never the reason for a failure.
  }
  return removed;
}

FileLock::FileLock(const std::string& path, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  auto pause = std::chrono::microseconds(200);
  for (;;) {
    if (!fd_)
      fd_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd_) fail_errno("the lock file must be writable", path);
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) {
      // Whoever empties the directory takes the name away: then others lock a different file.
      if (is_same_file(fd_.get(), path)) return;
      fd_ = Descriptor();
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) fail_errno("the file must be lockable", path);
    interrupt::poll();
    check<TimeoutError>(std::chrono::steady_clock::now() < until,
                        "[file] the lock must be free within {} ms: {} is held by another process",
                        limit.count(), path);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

}  // namespace netcl
