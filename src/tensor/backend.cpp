// What both backends have in common: whole arrays in terms of allocate, upload, download and copy.
#include "netcl/backend.h"

#include "base/check.h"
#include "cl/recording.h"
#include "memory/private_pools.h"
#include "tensor/host_copy.h"

namespace netcl {
namespace {

std::size_t bytes_of(const Shape& shape, DType dtype) {
  return static_cast<std::size_t>(checked_multiply(
      shape.numel(), static_cast<std::int64_t>(size_of(dtype)), "the number of bytes"));
}

bool needs_packing(const HostView& values, DType dtype) {
  return values.dtype != dtype ||
         (!values.strides.empty() && !is_contiguous(values.shape, values.strides));
}

HostArray packed(const HostView& values, DType dtype) {
  HostArray array(values.shape, dtype);
  const auto dense = contiguous_strides(values.shape);
  const auto& strides = values.strides.empty() ? dense : values.strides;
  if (array.numel() > 0)
    host_copy(plan_loops(values.shape, dense, strides), array.data(), dtype, values.data,
              values.dtype);
  return array;
}

}  // namespace

DeviceArray DeviceBackend::allocate(std::size_t bytes) {
  auto array = std::make_shared<detail::Storage>();
  array->lease = detail::persistent_pool(queue_).allocate(bytes);
  array->bytes = bytes;
  if (cl::is_recording()) [[unlikely]] {
    array->may_change_unseen = cl::t_recorder->writes_again();
    cl::t_recorder->allocated(array->lease.buffer(), bytes);
  }
  return array;
}

DeviceArray DeviceBackend::from_host(const HostView& values, DType dtype, TransferOptions options) {
  check<ShapeError>(values.strides.empty() ||
                        static_cast<std::int64_t>(values.strides.size()) == values.shape.rank(),
                    "[from_host] there must be one stride per axis: {} for shape {}",
                    values.strides.size(), values.shape.to_string());
  const auto bytes = bytes_of(values.shape, dtype);
  check<ArgumentError>(values.data != nullptr || bytes == 0,
                       "[from_host] the data must not be null for shape {}",
                       values.shape.to_string());
  auto array = allocate(bytes);
  if (bytes == 0) return array;
  if (needs_packing(values, dtype))
    upload(array, 0, packed(values, dtype).data(), bytes, options);
  else
    upload(array, 0, values.data, bytes, options);
  return array;
}

DeviceArray DeviceBackend::from_shape(const Shape& shape, DType dtype) {
  const auto bytes = bytes_of(shape, dtype);
  auto array = allocate(bytes);
  const std::uint8_t zero = 0;
  if (bytes != 0) fill(array, 0, bytes, &zero, sizeof zero);
  return array;
}

HostArray DeviceBackend::to_host(const DeviceArray& array, const Shape& shape, DType dtype) {
  return to_host_async(array, shape, dtype).wait();
}

AsyncHostArray DeviceBackend::to_host_async(const DeviceArray& array, const Shape& shape,
                                            DType dtype) {
  const auto bytes = bytes_of(shape, dtype);
  check<ArgumentError>(array != nullptr, "[to_host] the array must not be empty");
  check<ShapeError>(
      bytes <= array->bytes,
      "[to_host] the shape must fit the array: {} of {} is {} bytes, the array has {}",
      shape.to_string(), name_of(dtype), bytes, array->bytes);
  HostArray result(shape, dtype);
  const auto done = bytes == 0 ? Event() : download(array, 0, bytes, result.data(), false);
  return {std::move(result), done};
}

DeviceArray DeviceBackend::reshape(const DeviceArray& array, const Shape& from,
                                   const Shape& to) const {
  check<ShapeError>(from.numel() == to.numel(),
                    "[reshape] the number of elements must stay the same: {} to {}",
                    from.to_string(), to.to_string());
  return array;
}

}  // namespace netcl
