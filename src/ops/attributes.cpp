#include "ops/attributes.h"

#include "base/check.h"

namespace netcl {

std::string value_text(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& v) {
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
          return fmt::format("[{}]", join(v, ", "));
        else
          return fmt::format("{}", v);
      },
      value);
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

template <class T>
const T& Attributes::get(std::string_view name) const {
  const auto* found = find(name);
  const T* value = found == nullptr ? nullptr : std::get_if<T>(found);
  if (value == nullptr) fail<Error>("[attributes] no '{}' of this kind in: {}", name, to_string());
  return *value;
}

bool Attributes::flag(std::string_view name) const { return get<bool>(name); }
std::int64_t Attributes::integer(std::string_view name) const { return get<std::int64_t>(name); }

double Attributes::number(std::string_view name) const {
  const auto* found = find(name);
  if (found != nullptr)
    if (const auto* integer = std::get_if<std::int64_t>(found))
      return static_cast<double>(*integer);
  return get<double>(name);
}

const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return get<std::vector<std::int64_t>>(name);
}

const std::string& Attributes::text(std::string_view name) const { return get<std::string>(name); }

void Attributes::set(std::string_view name, AttributeValue value) {
  for (auto& [key, old] : entries_)
    if (key == name) {
      old = std::move(value);
      return;
    }
  entries_.emplace_back(name, std::move(value));
}

std::string Attributes::to_string() const {
  std::string text;
  for (const auto& [name, value] : entries_)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value_text(value));
  return text;
}

}  // namespace netcl
