// A file read from its beginning, unpacked on the way when it is a gzip file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

struct gzFile_s;

namespace netcl::io_detail {

class GzipInput {
 public:
  explicit GzipInput(const std::string& path);  // FileError when there is no readable file
  ~GzipInput();
  GzipInput(const GzipInput&) = delete;
  GzipInput& operator=(const GzipInput&) = delete;

  // FormatError (without the file's name) when it ends before, or is damaged.
  void read(std::span<std::byte> to);
  bool at_end();
  // What the whole content can have at most, for checks before memory is spent.
  std::uint64_t most_bytes() const { return most_bytes_; }

 private:
  std::size_t some(std::span<std::byte> to);
  gzFile_s* file_ = nullptr;
  std::uint64_t most_bytes_ = 0;
};

}  // namespace netcl::io_detail
