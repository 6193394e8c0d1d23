// zlib's gz functions read plain files too.
#include "io/gzip_input.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/file_stream.h"
#include "io/deflate_limit.h"

namespace netcl::io_detail {

GzipInput::GzipInput(const std::string& path) {
  InputFile input(path);
  std::array<std::byte, 2> start{};
  input.read(0, std::span(start).first(std::min<std::uint64_t>(2, input.size())));
  const bool packed = start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b};
  most_bytes_ = packed ? most_inflated(input.size()) : input.size();
  Descriptor fd(input.release());
  file_ = ::gzdopen(fd.get(), "rb");
  check<FileError>(file_ != nullptr, "[file] the file must be readable: {}: no memory", path);
  fd.release();  // zlib's now
  ::gzbuffer(file_, 1 << 17);
}

GzipInput::~GzipInput() { ::gzclose(file_); }

std::size_t GzipInput::some(std::span<std::byte> to) {
  constexpr std::size_t kMost = 1 << 30;  // zlib counts in int
  const auto got = ::gzread(file_, to.data(), static_cast<unsigned>(std::min(to.size(), kMost)));
  int code = Z_OK;
  const char* text = ::gzerror(file_, &code);
  check<FormatError>(got >= 0 && (code == Z_OK || code == Z_STREAM_END || got > 0),
                     "the gzip data must be sound: {}", text);
  return static_cast<std::size_t>(got);
}

void GzipInput::read(std::span<std::byte> to) {
  while (!to.empty()) {
    const auto got = some(to);
    check<FormatError>(got > 0, "{} bytes more are needed: the content ends", to.size());
    to = to.subspan(got);
  }
}

bool GzipInput::at_end() {
  std::byte beyond;
  return some({&beyond, 1}) == 0;
}

}  // namespace netcl::io_detail
