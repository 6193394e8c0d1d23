// IDX: two zero bytes, a type, the number of axes, big-endian sizes, big-endian values.
#include <array>
#include <optional>

#include "base/check.h"
#include "io/array_bytes.h"
#include "io/gzip_input.h"
#include "io/with_path.h"
#include "netcl/io.h"

namespace netcl::io {
namespace {

using namespace io_detail;

struct Element {
  DType dtype;
  std::size_t stored_bytes;
};

std::optional<Element> element_of(std::uint8_t code) {
  switch (code) {
    case 0x08:
      return Element{DType::uint8, 1};
    case 0x09:
      return Element{DType::int8, 1};
    case 0x0B:
      return Element{DType::int32, 2};
    case 0x0C:
      return Element{DType::int32, 4};
    case 0x0D:
      return Element{DType::float32, 4};
    case 0x0E:
      return Element{DType::float64, 8};
    default:
      return std::nullopt;
  }
}

// The 16-bit integers at the end of the array's memory, spread over all of it from the front.
void widen(HostArray& array) {
  const auto bytes = bytes_of(array);
  const auto count = static_cast<std::size_t>(array.numel());
  const auto* from = bytes.data() + bytes.size() - count * 2;
  auto to = array.values<std::int32_t>();
  for (std::size_t i = 0; i < count; ++i) {
    const auto high = std::to_integer<std::uint16_t>(from[2 * i]);
    const auto low = std::to_integer<std::uint16_t>(from[2 * i + 1]);
    to[i] = static_cast<std::int16_t>(static_cast<std::uint16_t>(high << 8 | low));
  }
}

std::vector<std::int64_t> read_sizes(GzipInput& input, std::size_t rank) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < rank; ++i) {
    std::array<std::byte, 4> bytes{};
    input.read(bytes);
    std::int64_t size = 0;
    for (const auto byte : bytes) size = size << 8 | std::to_integer<std::int64_t>(byte);
    sizes.push_back(size);
  }
  return sizes;
}

HostArray read_idx(GzipInput& input) {
  std::array<std::byte, 4> start{};
  input.read(start);
  const auto number = [&](std::size_t i) { return std::to_integer<std::uint8_t>(start[i]); };
  check<FormatError>(number(0) == 0 && number(1) == 0,
                     "an IDX file must begin with two zero bytes: {:#04x}, {:#04x}", number(0),
                     number(1));
  const auto element = element_of(number(2));
  check<FormatError>(element.has_value(),
                     "the type must be 0x08, 0x09, 0x0b, 0x0c, 0x0d or 0x0e: {:#04x}", number(2));
  const auto sizes = read_sizes(input, number(3));
  const auto bytes = bytes_of_shape(sizes, element->stored_bytes);
  const auto in_memory = bytes_of_shape(sizes, size_of(element->dtype));
  const auto before = 4 + 4 * sizes.size();
  check<FormatError>(bytes && in_memory && *bytes <= input.most_bytes() - before,
                     "the content must have the values of the shape ({}): it has at most {} bytes",
                     join(sizes, ", "), input.most_bytes());
  HostArray array(Shape(sizes), element->dtype);
  const auto values = bytes_of(array).last(*bytes);
  input.read(values);
  check<FormatError>(input.at_end(), "the content must end after {} bytes: it goes on",
                     before + *bytes);
  if (element->stored_bytes == 2)
    widen(array);
  else
    swap_bytes(values, element->stored_bytes);
  return array;
}

}  // namespace

HostArray load_idx(const std::string& path) {
  GzipInput input(path);
  return with_path<FormatError>(path, "load_idx", [&] { return read_idx(input); });
}

}  // namespace netcl::io
