// Host arrays as the bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "netcl/tensor.h"

namespace netcl::io_detail {

std::span<const std::byte> bytes_of(const HostArray& array);
std::span<std::byte> bytes_of(HostArray& array);
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// ArgumentError unless the array has memory (a default-made one has not).
void require_array(const HostArray& array, const char* op, std::string_view name);

// Bytes other than 0 and 1 become 1: as a bool they would be undefined behaviour.
void settle_booleans(HostArray& array);

// Reverses the bytes of each element.
void swap_bytes(std::span<std::byte> bytes, std::size_t element);

// The number of bytes of such an array, or nothing when a size is negative or it does not fit.
std::optional<std::uint64_t> bytes_of_shape(const std::vector<std::int64_t>& sizes,
                                            std::size_t element);

}  // namespace netcl::io_detail
