// Text scans. They may be wrong for text in comments, where a pragma too many does no harm.
#include "kernel/source_scan.h"

#include <algorithm>
#include <cctype>

namespace netcl {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_word);
}

std::string_view scalar_of(std::string_view type) {
  while (!type.empty() && (type.back() == '*' || type.back() == ' ')) type.remove_suffix(1);
  while (!type.empty() && std::isdigit(static_cast<unsigned char>(type.back())))
    type.remove_suffix(1);
  return type;
}

bool has_half_pointer(std::string_view source) {
  constexpr std::string_view kHalf = "half";
  for (auto at = source.find(kHalf); at != std::string_view::npos;
       at = source.find(kHalf, at + 1)) {
    auto end = at + kHalf.size();
    if (at > 0 && is_word(source[at - 1])) continue;
    while (end < source.size() && std::isdigit(static_cast<unsigned char>(source[end]))) ++end;
    while (end < source.size() && std::isspace(static_cast<unsigned char>(source[end]))) ++end;
    if (end < source.size() && source[end] == '*') return true;
  }
  return false;
}

}  // namespace netcl
