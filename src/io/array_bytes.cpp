// All formats here are little-endian but IDX; so are the hosts that netcl is built for.
#include "io/array_bytes.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace netcl::io_detail {

static_assert(std::endian::native == std::endian::little, "values are written as they are stored");

std::span<const std::byte> bytes_of(const HostArray& array) {
  return {static_cast<const std::byte*>(array.data()), array.nbytes()};
}

std::span<std::byte> bytes_of(HostArray& array) {
  return {static_cast<std::byte*>(array.data()), array.nbytes()};
}

void require_array(const HostArray& array, const char* op, std::string_view name) {
  check<ArgumentError>(array.data() != nullptr, "[{}] the array must not be default-made: {}", op,
                       name);
}

void settle_booleans(HostArray& array) {
  if (array.dtype() != DType::boolean) return;
  for (auto& byte : bytes_of(array)) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
}

void swap_bytes(std::span<std::byte> bytes, std::size_t element) {
  if (element == 1) return;
  for (std::size_t at = 0; at + element <= bytes.size(); at += element)
    std::reverse(bytes.data() + at, bytes.data() + at + element);
}

std::optional<std::uint64_t> bytes_of_shape(const std::vector<std::int64_t>& sizes,
                                            std::size_t element) {
  // As Shape does it: an overflow counts also where another size is 0.
  std::int64_t product = static_cast<std::int64_t>(element);
  bool empty = false;
  for (const auto size : sizes) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return empty ? 0 : static_cast<std::uint64_t>(product);
}

}  // namespace netcl::io_detail
