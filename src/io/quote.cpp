// Everything that is no printable ASCII is shown as its bytes' numbers.
#include "io/quote.h"

#include "base/format.h"

namespace netcl::io_detail {

std::string quote(std::string_view text) {
  constexpr std::size_t kShown = 120;
  std::string result = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c >= ' ' && c <= '~')
      result += c;
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return result + (text.size() > kShown ? "...\"" : "\"");
}

}  // namespace netcl::io_detail
