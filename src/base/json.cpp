#include "base/json.h"

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace netcl {

using nlohmann::json;

nlohmann::json parse_json(std::string_view where, std::string_view text) {
  constexpr int kMaxDepth = 100;
  const auto check_depth = [&](int depth, json::parse_event_t, const json&) {
    check<FormatError>(depth <= kMaxDepth, "[{}] the JSON may be nested {} deep: it is deeper",
                       where, kMaxDepth);
    return true;
  };
  auto value = json::parse(text.begin(), text.end(), check_depth, false);
  check<FormatError>(!value.is_discarded(), "[{}] the text must be JSON: {} bytes that are not",
                     where, text.size());
  return value;
}

std::string shown(const nlohmann::json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_structured())
    return fmt::format("{} of {}", value.is_array() ? "a list" : "an object", value.size());
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

}  // namespace netcl
