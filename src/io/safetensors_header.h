// The JSON header of a safetensors file, checked against everything that follows from it alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "netcl/io.h"

namespace netcl::io_detail {

struct SafetensorsHeader {
  std::map<std::string, io::SafetensorsFile::Entry> entries;  // offsets from the header's end
  io::Metadata metadata;
};

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

// `data_bytes` is what follows the header in the file. FormatError without the file's name.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes);

// Places the entries one after the other, largest elements first so that all are aligned; returns
// the header with its length in front and padding behind, a multiple of 8 bytes.
std::string make_safetensors_header(SafetensorsHeader& header);

}  // namespace netcl::io_detail
