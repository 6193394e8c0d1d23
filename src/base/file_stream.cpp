// Reads with pread and writes with pwrite, which need no shared position.
#include "base/file_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/file_detail.h"

namespace netcl {

using namespace file_detail;

InputFile::InputFile(const std::string& path) : path_(path) {
  fd_ = open_regular(AT_FDCWD, path, path);
  check<FileError>(static_cast<bool>(fd_), "[file] the file must exist: {}", path);
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail_errno("the file must be readable", path);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const auto got = ::pread(fd_.get(), to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("the file must be readable", path_);
    check<FormatError>(got > 0, "[file] {} bytes at {} are needed, but the file ends there: {}",
                       to.size(), offset, path_);
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

struct AtomicFile::State {
  State(const std::string& path, unsigned mode)
      : parts(split_path(path)),
        directory(::open(parts.first.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!directory) fail_errno("the directory must be readable", parts.first);
    check<FileError>(!parts.second.empty(), "[file] a file name is needed: \"{}\"", path);
    file = std::make_unique<Temporary>(directory.get(), mode, path);
  }

  std::pair<std::string, std::string> parts;  // directory, name
  Descriptor directory;
  std::unique_ptr<Temporary> file;
  std::uint64_t end = 0;
};

AtomicFile::AtomicFile(const std::string& path, unsigned mode)
    : path_(path), state_(std::make_unique<State>(path, mode)) {}

AtomicFile::~AtomicFile() = default;

void AtomicFile::write(std::span<const std::byte> bytes) { write_at(state_->end, bytes); }

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto put =
        ::pwrite(state_->file->fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_errno("the file must be writable", path_);
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  state_->end = std::max(state_->end, offset);
}

void AtomicFile::commit(Durable durable) {
  state_->file->rename_to(state_->parts.second, path_, durable);
}

}  // namespace netcl
