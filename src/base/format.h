// Text formatting: fmt::format from fmt's light header alone, and joining. Including fmt/format.h
// everywhere would more than double the time of a build; its code is compiled once, in format.cpp.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace netcl {

// The elements as text with `separator` between them.
template <class Range>
std::string join(const Range& range, std::string_view separator) {
  std::string text;
  bool first = true;
  for (const auto& element : range) {
    if (!first) text += separator;
    first = false;
    text += fmt::format("{}", element);
  }
  return text;
}

// As content or attribute of an HTML page.
std::string html_text(std::string_view text);

}  // namespace netcl
