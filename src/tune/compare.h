// Whether two local sizes gave the same result.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "netcl/dtype.h"

namespace netcl::tune {

// The element type behind an OpenCL C pointer or scalar ("float4*" -> float32); empty for structs
// and for types that netcl has no dtype for.
std::optional<DType> element_type(std::string_view type);

// Floating elements may differ by what another order of summation does to them; NaN equals NaN.
// Everything else, and memory of unknown type, must be equal byte by byte.
bool same_result(std::span<const std::byte> expected, std::span<const std::byte> actual,
                 std::optional<DType> type);

}  // namespace netcl::tune
