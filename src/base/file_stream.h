// Files that are too large to be held in memory whole: read at any place, written piece by piece
// and then complete or absent as by write_file_atomic.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"

namespace netcl {

class InputFile {
 public:
  explicit InputFile(const std::string& path);  // FileError when it is no readable, regular file

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  // Fills `to` from `offset` on; FormatError when the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  int release() { return fd_.release(); }  // the descriptor becomes the caller's

 private:
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

class AtomicFile {
 public:
  // `mode` is subject to the umask; files that the user names are for whom the umask allows.
  explicit AtomicFile(const std::string& path, unsigned mode = 0666);
  ~AtomicFile();  // without commit(): as if nothing had been written
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  void write(std::span<const std::byte> bytes);  // after what was written before
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void commit(Durable durable = Durable::yes);  // from here on readers see the new content

 private:
  struct State;
  std::string path_;
  std::unique_ptr<State> state_;
};

}  // namespace netcl
