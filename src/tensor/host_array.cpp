// Host arrays, finished and under way.
#include "base/check.h"
#include "base/env.h"
#include "cl/in_flight.h"
#include "netcl/tensor.h"
#include "tensor/convert.h"

namespace netcl {

TransferOptions::TransferOptions()
    : async_copy(env::flag("NETCL_ASYNC_H2D")), use_pinned(env::flag("NETCL_PINNED_H2D")) {}

HostArray::HostArray(Shape shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype) {
  const auto bytes = static_cast<std::size_t>(checked_multiply(
      shape_.numel(), static_cast<std::int64_t>(size_of(dtype)), "the number of bytes"));
  try {
    memory_ = std::shared_ptr<std::byte[]>(new std::byte[bytes]);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(
        fmt::format("[HostArray] the host must have the memory: {} bytes were asked for", bytes),
        bytes, 0, 0);
  }
}

double HostArray::at(std::int64_t index) const {
  check<ShapeError>(index >= 0 && index < numel(), "[at] the index must be in [0, {}): {}", numel(),
                    index);
  return visit_dtype(dtype_, [&]<class T>(T) {
    return convert_element<double>(static_cast<const T*>(data())[index]);
  });
}

void HostArray::require(DType dtype) const {
  check<DtypeError>(dtype == dtype_, "[values] the type must be the array's {}: {}",
                    name_of(dtype_), name_of(dtype));
}

AsyncHostArray::~AsyncHostArray() { settle(); }

AsyncHostArray& AsyncHostArray::operator=(AsyncHostArray&& other) noexcept {
  if (this == &other) return *this;
  settle();
  array_ = std::move(other.array_);
  done_ = std::move(other.done_);
  return *this;
}

void AsyncHostArray::settle() noexcept {
  if (cl::has_ended(done_)) return;
  try {
    cl::keep_until_ended(done_, std::make_shared<HostArray>(array_));
  } catch (...) {
    static_cast<void>(new (std::nothrow) HostArray(std::move(array_)));  // never freed
  }
}

const HostArray& AsyncHostArray::wait() {
  done_.wait();
  return array_;
}

}  // namespace netcl
