// The few things netcl wants to know about a kernel's text before a compiler sees it.
#pragma once

#include <string_view>

namespace netcl {

bool is_identifier(std::string_view text);

// The scalar behind a parameter's type: "float4*" -> "float".
std::string_view scalar_of(std::string_view type);

// Does a pointer to half occur, as in "__global half*" or "global const half *x"?
bool has_half_pointer(std::string_view source);

}  // namespace netcl
