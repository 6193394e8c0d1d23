// The OpenCL backend: transfers through the queue, copies and random numbers by kernels.
#include "base/check.h"
#include "cl/cl.h"
#include "cl/state.h"
#include "cl/wait.h"
#include "kernel/builtin.h"
#include "kernel/launch.h"
#include "netcl/backend.h"
#include "netcl/capabilities.h"
#include "tensor/host_copy.h"
#include "tensor/random.h"
#include "tensor/upload.h"

namespace netcl {
namespace {

constexpr std::size_t kMaxKernelAxes = 8;

// The unsigned type that moves an element without looking at it.
const char* opaque_type(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return "uchar";
    case 2:
      return "ushort";
    case 4:
      return "uint";
    default:
      return "ulong";
  }
}

// The last (innermost) axes as the vectors that the kernels take, innermost first.
struct KernelAxes {
  alignas(64) std::int64_t sizes[kMaxKernelAxes] = {1, 1, 1, 1, 1, 1, 1, 1};
  alignas(64) std::int64_t to[kMaxKernelAxes] = {};
  alignas(64) std::int64_t from[kMaxKernelAxes] = {};
  std::int64_t count = 1;

  explicit KernelAxes(std::span<const LoopAxis> axes) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto& axis = axes[axes.size() - 1 - i];
      sizes[i] = axis.size;
      to[i] = axis.to;
      from[i] = axis.from;
      count *= axis.size;
    }
  }
};

class StridedCopy {
 public:
  StridedCopy(const Queue& queue, const StridedView& to, const StridedView& from)
      : queue_(queue), to_(to), from_(from) {}

  // Axes beyond what a kernel takes are walked here.
  void run(std::span<const LoopAxis> axes, std::int64_t to, std::int64_t from) {
    if (axes.size() <= kMaxKernelAxes) return launch(KernelAxes(axes), axes.size(), to, from);
    for (std::int64_t i = 0; i < axes[0].size; ++i)
      run(axes.subspan(1), to + i * axes[0].to, from + i * axes[0].from);
  }

 private:
  void launch(const KernelAxes& axes, std::size_t rank, std::int64_t to, std::int64_t from) {
    const auto kernel = kernel_for(std::max<std::size_t>(rank, 1), axes.count);
    launch_range(queue_, *kernel, static_cast<std::uint64_t>(axes.count), from_.array->buffer(),
                 to_.array->buffer(), axes.count, to, from,
                 KernelArg::by_value(axes.sizes, sizeof axes.sizes),
                 KernelArg::by_value(axes.to, sizeof axes.to),
                 KernelArg::by_value(axes.from, sizeof axes.from));
  }

  std::shared_ptr<detail::KernelState> kernel_for(std::size_t rank, std::int64_t count) const {
    // 64-bit division is several times slower on most devices.
    const auto index = fmt::format("INDEX={}", count < INT32_MAX ? "uint" : "ulong");
    const auto axes = fmt::format("RANK={}", rank);
    if (to_.dtype == from_.dtype)
      return builtin_kernel(queue_, "tensor/kernels/copy.cl", "copy",
                            {fmt::format("T={}", opaque_type(to_.dtype)), index, axes});
    return builtin_kernel(queue_, "tensor/kernels/cast.cl", "cast",
                          {fmt::format("SRC_{}", name_of(from_.dtype)),
                           fmt::format("DST_{}", name_of(to_.dtype)), index, axes});
  }

  const Queue& queue_;
  const StridedView& to_;
  const StridedView& from_;
};

// Conversions to or from float64 on a device that cannot compute with it.
bool needs_host(const Queue& queue, DType to, DType from) {
  return to != from && (to == DType::float64 || from == DType::float64) &&
         !device_profile(queue).has_fp64;
}

}  // namespace

OpenCLBackend::OpenCLBackend(const Queue& queue) : DeviceBackend(queue) {
  check<DeviceError>(static_cast<bool>(queue) && !queue.is_cpu(),
                     "[OpenCLBackend] the queue must be one of an OpenCL device");
}

void OpenCLBackend::upload(const DeviceArray& to, std::size_t offset, const void* from,
                           std::size_t bytes, TransferOptions options) {
  queue_.state().recent.add("upload");
  if (options.async_copy)
    uploads_of(queue_)->upload(queue_, to->buffer(), offset, from, bytes, options.use_pinned);
  else
    cl::write(queue_.get(), to->buffer(), offset, bytes, from, true);
}

Event OpenCLBackend::download(const DeviceArray& from, std::size_t offset, std::size_t bytes,
                              void* to, bool blocking) {
  queue_.state().recent.add("download");
  Event done;
  cl::read(queue_.get(), from->buffer(), offset, bytes, to, false, &done);
  cl::flush(queue_.get());
  if (!blocking) return done;
  cl::wait(done, 0, &queue_.state());
  return {};
}

void OpenCLBackend::fill(const DeviceArray& array, std::size_t offset, std::size_t bytes,
                         const void* pattern, std::size_t pattern_bytes) {
  queue_.state().recent.add("fill");
  cl::fill(queue_.get(), array->buffer(), offset, bytes, pattern, pattern_bytes);
}

void OpenCLBackend::copy(const Shape& shape, const StridedView& to, const StridedView& from) {
  if (shape.numel() == 0) return;
  const auto axes = plan_loops(shape, to.strides, from.strides);
  if (to.dtype == from.dtype && is_linear(axes)) {
    const auto size = static_cast<std::int64_t>(size_of(to.dtype));
    queue_.state().recent.add("copy");
    cl::copy(queue_.get(), from.array->buffer(), static_cast<std::size_t>(from.offset * size),
             to.array->buffer(), static_cast<std::size_t>(to.offset * size),
             static_cast<std::size_t>(shape.numel() * size));
    return;
  }
  if (!needs_host(queue_, to.dtype, from.dtype))
    return StridedCopy(queue_, to, from).run(axes, to.offset, from.offset);
  // Both arrays as a whole visit the host; the target comes too because the view may have gaps.
  std::vector<std::byte> source(from.array->bytes), target(to.array->bytes);
  download(from.array, 0, source.size(), source.data(), true);
  download(to.array, 0, target.size(), target.data(), true);
  host_copy(axes, target.data() + to.offset * static_cast<std::int64_t>(size_of(to.dtype)),
            to.dtype, source.data() + from.offset * static_cast<std::int64_t>(size_of(from.dtype)),
            from.dtype);
  upload(to.array, 0, target.data(), target.size(), TransferOptions(false, false));
}

void OpenCLBackend::random(const DeviceArray& to, std::int64_t count, DType dtype,
                           std::uint64_t seed, Distribution distribution) {
  if (count == 0) return;
  if (dtype == DType::float64 && !device_profile(queue_).has_fp64) {
    HostArray values(Shape{count}, dtype);
    host_random(values.data(), count, dtype, seed, distribution);
    upload(to, 0, values.data(), values.nbytes(), TransferOptions());
    return;
  }
  const auto kernel =
      builtin_kernel(queue_, "tensor/kernels/random.cl", "random",
                     {fmt::format("DST_{}", name_of(dtype)),
                      fmt::format("NORMAL={}", distribution == Distribution::normal ? 1 : 0)});
  const std::int64_t per_item = dtype == DType::float64 ? 2 : 4;
  launch_range(queue_, *kernel, static_cast<std::uint64_t>((count + per_item - 1) / per_item),
               to->buffer(), count, seed);
}

}  // namespace netcl
