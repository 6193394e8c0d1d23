// What a tensor looks like when printed: nested values, cut in the middle when there are many.
#include "base/check.h"
#include "cl/recording.h"
#include "netcl/tensor.h"

namespace netcl {
namespace {

constexpr std::int64_t kMostValues = 1000, kEdge = 3;

std::string text_of(const HostArray& array, std::int64_t index) {
  const double value = array.at(index);
  if (array.dtype() == DType::boolean) return value != 0 ? "True" : "False";
  if (array.dtype() == DType::int64)
    return std::to_string(array.values<std::int64_t>()[static_cast<std::size_t>(index)]);
  return is_floating(array.dtype()) ? fmt::format("{:.6g}", value) : fmt::format("{:.0f}", value);
}

std::string nested(const HostArray& array, std::int64_t axis, std::int64_t first) {
  if (axis == array.shape().rank()) return text_of(array, first);
  std::int64_t step = 1;
  for (auto inner = axis + 1; inner < array.shape().rank(); ++inner) step *= array.shape()[inner];
  const auto size = array.shape()[axis];
  const bool last = axis + 1 == array.shape().rank();
  const auto separator = last ? ", " : ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
  std::string text = "[";
  for (std::int64_t i = 0; i < size; ++i) {
    if (i != 0) text += separator;
    if (array.numel() > kMostValues && size > 2 * kEdge && i == kEdge) {
      text += "...";
      i = size - kEdge - 1;
      continue;
    }
    text += nested(array, axis + 1, first + i * step);
  }
  return text + "]";
}

}  // namespace

std::string Tensor::to_string() const {
  const cl::ReaderName name("to_string()");
  if (storage_ == nullptr) return "Tensor(empty)";
  return fmt::format("Tensor({}, shape={}, dtype={}, device='{}')",
                     numel() == 0 ? "[]" : nested(to_host(), 0, 0), shape_.to_string(),
                     name_of(dtype_), queue_.name());
}

}  // namespace netcl
