// JSON text that is not trusted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace netcl {

// FormatError, with `where` in brackets, for what is no JSON or nested deeper than anything netcl
// writes: writing such a value again, as messages do, is a recursion that would end the stack.
nlohmann::json parse_json(std::string_view where, std::string_view text);

// A value for a message: short, whatever it is.
std::string shown(const nlohmann::json& value);

}  // namespace netcl
