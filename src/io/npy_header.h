// The header of an npy file: magic bytes, a version, and a Python literal that describes the array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "netcl/tensor.h"

namespace netcl::io_detail {

struct NpyHeader {
  DType dtype = DType::float32;
  bool fortran_order = false;
  Shape shape;
  std::uint64_t bytes = 0;  // of the values
};

// The Python literal. FormatError without the file's name.
NpyHeader parse_npy_literal(std::string_view text);

// Reads a whole npy stream: `read` fills exactly what it is given or throws; `check_size` is told
// how many bytes of values must follow before anything is allocated for them.
HostArray read_npy(const std::function<void(std::span<std::byte>)>& read,
                   const std::function<void(std::uint64_t)>& check_size);

// Everything in front of the values. DtypeError for bfloat16.
std::string make_npy_header(const HostArray& array, const char* op);

}  // namespace netcl::io_detail
