// What a tensor looks like when printed: nested values, cut in the middle when there are many.
#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "cl/recording.h"
#include "netcl/tensor.h"

namespace netcl {
namespace {

constexpr std::int64_t kMostValues = 1000, kEdge = 3;

constexpr std::string_view kOpening = "Tensor(";

std::string text_of(const HostArray& array, std::int64_t index) {
  const double value = array.at(index);
  if (array.dtype() == DType::boolean) return value != 0 ? "True" : "False";
  if (array.dtype() == DType::int64)
    return std::to_string(array.values<std::int64_t>()[static_cast<std::size_t>(index)]);
  if (!is_floating(array.dtype())) return fmt::format("{:.0f}", value);
  const auto text = fmt::format("{:.6g}", value);
  return text.find_first_of(".einf") == std::string::npos ? text + "." : text;
}

// Calls value(index) for the elements that are shown, and text(...) for what is between them.
template <class Value, class Text>
void walk(const HostArray& array, std::int64_t axis, std::int64_t first, const Value& value,
          const Text& text) {
  if (axis == array.shape().rank()) return value(first);
  std::int64_t step = 1;
  for (auto inner = axis + 1; inner < array.shape().rank(); ++inner) step *= array.shape()[inner];
  const auto size = array.shape()[axis];
  const bool last = axis + 1 == array.shape().rank();
  const auto indent = kOpening.size() + static_cast<std::size_t>(axis) + 1;
  text("[");
  for (std::int64_t i = 0; i < size; ++i) {
    if (i != 0) text(last ? ", " : ",\n" + std::string(indent, ' '));
    if (array.numel() > kMostValues && size > 2 * kEdge && i == kEdge) {
      text("...");
      i = size - kEdge - 1;
      continue;
    }
    walk(array, axis + 1, first + i * step, value, text);
  }
  text("]");
}

// In columns.
std::string nested(const HostArray& array) {
  std::size_t width = 0;
  walk(
      array, 0, 0,
      [&](std::int64_t index) { width = std::max(width, text_of(array, index).size()); },
      [](const std::string&) {});
  std::string result;
  walk(
      array, 0, 0,
      [&](std::int64_t index) {
        const auto text = text_of(array, index);
        result.append(width - text.size(), ' ').append(text);
      },
      [&](const std::string& text) { result += text; });
  return result;
}

}  // namespace

std::string Tensor::to_string() const {
  const cl::ReaderName name("to_string()");
  if (storage_ == nullptr) return "Tensor(empty)";
  return fmt::format("{}{}, shape={}, dtype={}, device='{}')", kOpening,
                     numel() == 0 ? "[]" : nested(to_host()), shape_.to_string(), name_of(dtype_),
                     queue_.name());
}

}  // namespace netcl
