// The two kinds of image files. Their libraries report errors with longjmp: inside, no object with
// a destructor may live in a frame that is jumped over, so all state is in structures made outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "netcl/io.h"

namespace netcl::io_detail {

struct ImageSize {
  std::int64_t width = 0, height = 0;
  int channels = 0;  // 1 or 3
};

// Decodes bytes of a file; `check_size` is told the size before memory is spent on it. FormatError
// without the file's name. The result has 1 or 3 channels, as stored.
using SizeCheck = std::function<void(const ImageSize&)>;
HostArray decode_png(std::span<const std::byte> bytes, const SizeCheck& check_size);
HostArray decode_jpeg(std::span<const std::byte> bytes, const SizeCheck& check_size);

// uint8 (height, width, 1 or 3).
std::vector<std::byte> encode_png(const HostArray& image);

}  // namespace netcl::io_detail
