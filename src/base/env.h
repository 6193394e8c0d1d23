// The one place that reads the environment. Every variable is a row of the table in env.cpp, from
// which docs/environment.md is written; asking for a name that is not in it is a programming error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "netcl/environment.h"

namespace netcl::env {

// The value as text, or the row's default.
std::string text(std::string_view name);
// "0", "", "false", "off" and "no" are false.
bool flag(std::string_view name);
// A value that is not a number is one warning and then the default.
std::int64_t integer(std::string_view name);
double number(std::string_view name);
// Variables of the system that netcl looks at, not its own: HOME, XDG_CACHE_HOME, OCL_ICD_VENDORS.
std::string system(std::string_view name);
// The same number as long as nobody sets a variable, of netcl or not: cheaper than asking for one.
std::uint64_t fingerprint();

}  // namespace netcl::env
