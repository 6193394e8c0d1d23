#include "selftest/guarded.h"

#include <cstring>
#include <set>

#include "base/format.h"
#include "selftest/data.h"

namespace netcl::selftest_detail {
namespace {

constexpr std::int64_t kGuard = 67;  // elements on each side; odd, so that nothing is aligned

// Bytes of all ones: NaN in every floating dtype, -1 or the largest value of the integers.
Tensor poisoned(const Queue& queue, std::int64_t count, DType dtype) {
  HostArray memory(Shape{count}, dtype);
  std::memset(memory.data(), dtype == DType::boolean ? 1 : 0xff, memory.nbytes());
  return Tensor::from_host(queue, memory);
}

// The elements in reverse order of axes, every second one of the last axis of the memory.
Tensor strided_part(const Tensor& memory, const Shape& shape) {
  std::vector<std::int64_t> sizes(shape.sizes().rbegin(), shape.sizes().rend());
  std::vector<std::int64_t> axes;
  for (std::int64_t i = shape.rank(); i-- > 0;) axes.push_back(i);
  auto padded = sizes;
  padded.back() *= 2;
  const auto part = memory.narrow(0, kGuard, Shape(padded).numel()).view(Shape(padded));
  return part.slice(-1, 0, Tensor::kEnd, 2).permute(axes);
}

GuardedTensor make_memory(const Queue& queue, const Shape& shape, DType dtype, Layout layout) {
  const bool strided = layout == Layout::views && shape.rank() > 0;
  const auto count = shape.numel() * (strided ? 2 : 1) + 2 * kGuard;
  GuardedTensor guarded{poisoned(queue, count, dtype), {}, {}};
  guarded.tensor = strided ? strided_part(guarded.memory, shape)
                           : guarded.memory.narrow(0, kGuard, shape.numel()).view(shape);
  return guarded;
}

// Flat positions of the tensor's elements, in their order.
std::vector<std::int64_t> positions(const Tensor& tensor) {
  std::vector<std::int64_t> all;
  const auto& shape = tensor.shape();
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::int64_t rest = i, at = tensor.offset();
    for (std::int64_t axis = shape.rank(); axis-- > 0;) {
      at += rest % shape[axis] * tensor.strides()[static_cast<std::size_t>(axis)];
      rest /= shape[axis];
    }
    all.push_back(at);
  }
  return all;
}

}  // namespace

GuardedTensor make_input(const Queue& queue, const RefArray& array, Layout layout) {
  auto guarded = make_memory(queue, array.shape, array.dtype, layout);
  // In one piece: Oclgrind loses what it knows of a buffer of which the host writes a part.
  auto memory = guarded.memory.to_host();
  const auto values = to_host_array(array);
  const auto bytes = size_of(array.dtype);
  std::size_t index = 0;
  for (const auto at : positions(guarded.tensor))
    std::memcpy(static_cast<char*>(memory.data()) + static_cast<std::size_t>(at) * bytes,
                static_cast<const char*>(values.data()) + bytes * index++, bytes);
  guarded.memory.write(memory);
  guarded.before = guarded.memory.to_host();
  return guarded;
}

GuardedTensor make_output(const Queue& queue, const Shape& shape, DType dtype, Layout layout) {
  auto guarded = make_memory(queue, shape, dtype, layout);
  guarded.before = guarded.memory.to_host();
  return guarded;
}

std::string GuardedTensor::damage(bool may_write_elements) const {
  const auto after = memory.to_host();
  if (std::memcmp(after.data(), before.data(), before.nbytes()) == 0) return {};
  const auto elements = may_write_elements ? positions(tensor) : std::vector<std::int64_t>{};
  const std::set<std::int64_t> mine(elements.begin(), elements.end());
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
  const auto* a = static_cast<const std::byte*>(after.data());
  const auto* b = static_cast<const std::byte*>(before.data());
  for (std::int64_t i = 0; i < before.numel(); ++i)
    if (std::memcmp(a + i * size, b + i * size, static_cast<std::size_t>(size)) != 0 &&
        !mine.contains(i))
      return fmt::format("memory at element {} of the {} around the tensor was overwritten with {}",
                         i - tensor.offset(), before.numel(), after.at(i));
  return {};
}

}  // namespace netcl::selftest_detail
