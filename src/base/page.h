// The frame of every report: one HTML page without scripts or other files, light or dark as the
// reader's system is.
#pragma once

#include <string>
#include <string_view>

namespace netcl {

// `style` is CSS beyond the common one; `body` is HTML. Colors are variables: --text, --soft,
// --back, --line, --first, --second, --third, --other, and --good, --bad as three numbers.
std::string html_page(std::string_view title, std::string_view style, std::string_view body);

}  // namespace netcl
