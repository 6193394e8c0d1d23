#include "base/near_names.h"

#include <algorithm>
#include <cctype>

namespace netcl {
namespace {

constexpr std::size_t kMost = 3;
constexpr std::size_t kLongest = 64;  // longer words are no slips

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Letters to insert, remove or change; case does not count.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto changed = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kLongest) return {};
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const auto& name : names)
    if (name.size() <= kLongest)
      if (const auto d = distance(word, name); d <= std::max<std::size_t>(1, word.size() / 3))
        found.emplace_back(d, name);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() > kMost) found.resize(kMost);
  std::vector<std::string> near;
  for (auto& [d, name] : found) near.push_back(std::move(name));
  return near;
}

}  // namespace netcl
