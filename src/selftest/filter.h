// Filters over case ids.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace netcl::selftest_detail {

class Filter {
 public:
  explicit Filter(std::string_view text);
  bool matches(std::string_view id) const;
  // Whether an id that begins like this could match: whole ops are passed over quickly.
  bool may_match_prefix(std::string_view prefix) const;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace netcl::selftest_detail
