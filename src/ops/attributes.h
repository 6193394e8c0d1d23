// The settings of an op call that are not tensors: axes, strides, slopes. Names are literals.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace netcl {

using AttributeValue =
    std::variant<bool, std::int64_t, double, std::vector<std::int64_t>, std::string>;

std::string value_text(const AttributeValue& value);  // "[2, 2]", "0.5"

class Attributes {
 public:
  using Entry = std::pair<std::string_view, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  // Error (a defect of netcl) when there is no such attribute, or one of another kind.
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;  // also of integers
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string_view name, AttributeValue value);
  const std::vector<Entry>& entries() const { return entries_; }
  std::string to_string() const;  // "stride=[2, 2] groups=1"

 private:
  const AttributeValue* find(std::string_view name) const;
  template <class T>
  const T& get(std::string_view name) const;

  std::vector<Entry> entries_;  // few: searched one by one
};

}  // namespace netcl
