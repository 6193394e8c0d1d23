// The CPU backend: host memory from the pool, plain loops, everything done when a call returns.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "netcl/backend.h"
#include "tensor/host_copy.h"
#include "tensor/random.h"

namespace netcl {
namespace {

std::byte* element(const StridedView& side) {
  return side.array->host() + side.offset * static_cast<std::int64_t>(size_of(side.dtype));
}

}  // namespace

CPUBackend::CPUBackend() : CPUBackend(manager().default_device("cpu").queue) {}

CPUBackend::CPUBackend(const Queue& queue) : DeviceBackend(queue) {
  check<DeviceError>(queue.is_cpu(), "[CPUBackend] the queue must be a CPUQueue: it is of {}",
                     queue.name());
}

void CPUBackend::upload(const DeviceArray& to, std::size_t offset, const void* from,
                        std::size_t bytes, TransferOptions) {
  std::memcpy(to->host() + offset, from, bytes);
}

Event CPUBackend::download(const DeviceArray& from, std::size_t offset, std::size_t bytes, void* to,
                           bool) {
  std::memcpy(to, from->host() + offset, bytes);
  return {};
}

void CPUBackend::fill(const DeviceArray& array, std::size_t offset, std::size_t bytes,
                      const void* pattern, std::size_t pattern_bytes) {
  auto* to = array->host() + offset;
  if (pattern_bytes == 1) {
    std::memset(to, *static_cast<const std::uint8_t*>(pattern), bytes);
    return;
  }
  if (bytes == 0) return;
  // Doubled until it is long enough for the C library to be fast at.
  constexpr std::size_t kBlock = 1 << 14;
  std::memcpy(to, pattern, pattern_bytes);
  auto done = pattern_bytes;
  while (done < bytes) {
    const auto next = std::min({done, kBlock / pattern_bytes * pattern_bytes, bytes - done});
    std::memcpy(to + done, to, next);
    done += next;
  }
}

void CPUBackend::copy(const Shape& shape, const StridedView& to, const StridedView& from) {
  if (shape.numel() == 0) return;
  host_copy(plan_loops(shape, to.strides, from.strides), element(to), to.dtype, element(from),
            from.dtype);
}

void CPUBackend::random(const DeviceArray& to, std::int64_t count, DType dtype, std::uint64_t seed,
                        Distribution distribution) {
  host_random(to->host(), count, dtype, seed, distribution);
}

}  // namespace netcl
