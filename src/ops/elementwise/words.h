// The words of an expression's text.
#pragma once

#include <cctype>
#include <string_view>

namespace netcl {

inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Calls f(word or character) for the pieces of an expression in order.
template <class F>
void for_each_word(std::string_view text, F&& f) {
  for (std::size_t at = 0; at < text.size();) {
    auto end = at + 1;
    if (is_word(text[at]))
      while (end < text.size() && is_word(text[end])) ++end;
    f(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace netcl
