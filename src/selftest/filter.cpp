#include "selftest/filter.h"

#include <algorithm>

namespace netcl::selftest_detail {
namespace {

// '*' stands for any characters.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t skip = 0; skip <= text.size(); ++skip)
      if (matches_pattern(pattern.substr(1), text.substr(skip))) return true;
    return false;
  }
  return !text.empty() && text.front() == pattern.front() &&
         matches_pattern(pattern.substr(1), text.substr(1));
}

// Without a '*', whole parts of the id from its beginning: "add" is not "addmm".
bool matches_parts(std::string_view pattern, std::string_view id) {
  return id.starts_with(pattern) &&
         (id.size() == pattern.size() || pattern.ends_with('/') || id[pattern.size()] == '/');
}

}  // namespace

Filter::Filter(std::string_view text) {
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (comma > 0) patterns_.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

bool Filter::matches(std::string_view id) const {
  if (patterns_.empty()) return true;
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
    return pattern.find('*') == pattern.npos ? matches_parts(pattern, id)
                                             : matches_pattern(pattern, id);
  });
}

bool Filter::may_match_prefix(std::string_view prefix) const {
  if (patterns_.empty()) return true;
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
    const auto fixed = std::string_view(pattern).substr(0, pattern.find('*'));
    const auto common = std::min(fixed.size(), prefix.size());
    return fixed.substr(0, common) == prefix.substr(0, common);
  });
}

}  // namespace netcl::selftest_detail
