// The one place where the fmt library is compiled. Inline functions are emitted where their address
// is taken, and the other files link to those: no shared library has to be carried along.
#define FMT_HEADER_ONLY 1
#include "base/format.h"

#include <fmt/format.h>

namespace netcl {

[[gnu::used]] std::string (*const kVformat)(fmt::string_view, fmt::format_args) = &fmt::vformat;
[[gnu::used]] void (*const kThrowFormatError)(const char*) = &fmt::detail::throw_format_error;
[[gnu::used]] void (*const kAssertFail)(const char*, int, const char*) = &fmt::detail::assert_fail;

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace netcl
