// Turning a compiler's log into an error that shows the lines it complains about.
#pragma once

#include <string>
#include <string_view>

#include "netcl/error.h"

namespace netcl {

// The numbered source lines that `log` points at ("...:12:5: error"), with one line around each.
std::string lines_of_log(std::string_view log, std::string_view source);

BuildError make_build_error(std::string_view what, const std::string& log, std::string_view source,
                            const std::string& device, const std::string& options);

}  // namespace netcl
