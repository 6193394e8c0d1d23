// Images of either kind, with the channels the caller wants.
#include "base/check.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "io/array_bytes.h"
#include "io/image_codec.h"
#include "io/quote.h"
#include "io/with_path.h"
#include "netcl/io.h"

namespace netcl::io {
namespace {

using namespace io_detail;

HostArray decode(std::span<const std::byte> bytes, const SizeCheck& check_size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, check_size);
  if (text.starts_with("\xff\xd8")) return decode_jpeg(bytes, check_size);
  fail<FormatError>("the file must be a PNG or a JPEG: it begins with {}",
                    quote(text.substr(0, 8)));
}

HostArray to_gray(const HostArray& rgb) {
  HostArray gray(Shape{rgb.shape()[0], rgb.shape()[1], 1}, DType::uint8);
  const auto* from = static_cast<const std::uint8_t*>(rgb.data());
  // ITU-R 601 luma in 16-bit fixed point; the weights sum to 65536.
  for (auto& value : gray.values<std::uint8_t>()) {
    value = static_cast<std::uint8_t>(
        (from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    from += 3;
  }
  return gray;
}

HostArray to_rgb(const HostArray& gray) {
  HostArray rgb(Shape{gray.shape()[0], gray.shape()[1], 3}, DType::uint8);
  auto* to = static_cast<std::uint8_t*>(rgb.data());
  for (const auto value : gray.values<std::uint8_t>()) {
    to[0] = to[1] = to[2] = value;
    to += 3;
  }
  return rgb;
}

}  // namespace

HostArray load_image(const std::string& path, Channels channels, const ImageLimits& limits) {
  const auto bytes = read_file(path, limits.file_bytes);
  const auto check_size = [&](const ImageSize& size) {
    check<FormatError>(size.width > 0 && size.height > 0 && size.width <= limits.side &&
                           size.height <= limits.side && size.width * size.height <= limits.pixels,
                       "an image may have {} pixels on a side and {} in all: {} x {}", limits.side,
                       limits.pixels, size.width, size.height);
    check<FormatError>(size.channels == 1 || size.channels == 3,
                       "an image must have 1 or 3 channels: {}", size.channels);
  };
  const auto image =
      with_path<FormatError>(path, "load_image", [&] { return decode(bytes, check_size); });
  const bool is_gray = image.shape()[2] == 1;
  if (channels == Channels::gray && !is_gray) return to_gray(image);
  if (channels == Channels::rgb && is_gray) return to_rgb(image);
  return image;
}

std::vector<std::byte> encode_png(const HostArray& image) {
  require_array(image, "encode_png", "the image");
  check<DtypeError>(image.dtype() == DType::uint8, "[encode_png] the dtype must be uint8: {}",
                    name_of(image.dtype()));
  const auto& shape = image.shape();
  const bool good =
      (shape.rank() == 2 || (shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3))) &&
      shape[0] > 0 && shape[1] > 0 && shape[0] <= 1'000'000 && shape[1] <= 1'000'000;
  check<ShapeError>(good,
                    "[encode_png] the shape must be (height, width) or (height, width, 1 or 3) "
                    "with sides of 1 to 1000000: {}",
                    shape.to_string());
  return io_detail::encode_png(image);
}

void save_png(const std::string& path, const HostArray& image) {
  const auto bytes = encode_png(image);
  remove_stale_temporaries(parent_directory(path));
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace netcl::io
