// The OpenCL backend: transfers through the queue, copies and random numbers by kernels.
#include "base/check.h"
#include "base/log.h"
#include "cl/cl.h"
#include "cl/recording.h"
#include "cl/state.h"
#include "cl/wait.h"
#include "netcl/backend.h"
#include "netcl/capabilities.h"
#include "tensor/cpu_copies.h"
#include "tensor/host_copy.h"
#include "tensor/kernels.h"
#include "tensor/random.h"
#include "tensor/upload.h"

namespace netcl {
namespace {

constexpr std::int64_t kWorthTiles = 4096;  // elements

// Axes beyond what a kernel takes are walked here.
void copy_axes(const Queue& queue, std::span<const LoopAxis> axes, const StridedView& to,
               std::int64_t to_offset, const StridedView& from, std::int64_t from_offset) {
  if (axes.size() > kMaxKernelAxes) {
    for (std::int64_t i = 0; i < axes[0].size; ++i)
      copy_axes(queue, axes.subspan(1), to, to_offset + i * axes[0].to, from,
                from_offset + i * axes[0].from);
    return;
  }
  const KernelAxes kernel_axes(axes);
  const bool is_cpu = device_profile(queue).is_cpu;
  if (to.dtype != from.dtype && is_cpu)
    return enqueue_cast_tiles(queue, to.dtype, from.dtype, axes, to.array->buffer(), to_offset,
                              from.array->buffer(), from_offset);
  if (to.dtype == from.dtype && kernel_axes.count >= kWorthTiles && is_cpu)
    return enqueue_cpu_copy(queue, to.dtype, axes, to.array->buffer(), to_offset,
                            from.array->buffer(), from_offset);
  const auto n = static_cast<std::uint64_t>(kernel_axes.count);
  const auto kernel = to.dtype == from.dtype ? copy_kernel(to.dtype, axes.size(), n)
                                             : cast_kernel(from.dtype, to.dtype, axes.size(), n);
  const auto launch = element_launch(queue, kernel, n, [&] {
    return scratch_copy_problem(queue, from.dtype, to.dtype, axes.size(), n);
  });
  enqueue_copy(queue, launch, kernel_axes, to.array->buffer(), to_offset, from.array->buffer(),
               from_offset);
}

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
  if (cl::is_recording()) [[unlikely]]  // the recorder keeps the bytes
    cl::write(queue_.get(), to->buffer(), offset, bytes, from, false);
  else if (options.async_copy)
    uploads_of(queue_)->upload(queue_, to->buffer(), offset, from, bytes, options.use_pinned);
  else
    cl::write(queue_.get(), to->buffer(), offset, bytes, from, true);
}

Event OpenCLBackend::download(const DeviceArray& from, std::size_t offset, std::size_t bytes,
                              void* to, bool blocking) {
  queue_.state().recent.add("download");
  Event done;
  cl::read(queue_.get(), from->buffer(), offset, bytes, to, false, &done);
  try {
    cl::flush(queue_.get());
  } catch (const DeviceError& error) {
    // The command is in the queue and its event must not be lost; waiting for it flushes again.
    log::debug(1, "{}", error.what());
  }
  if (!blocking) return done;
  try {
    cl::wait(done, 0, &queue_.state());
  } catch (...) {
    cl::see_the_end(queue_.get());
    throw;
  }
  return {};
}

void OpenCLBackend::fill(const DeviceArray& array, std::size_t offset, std::size_t bytes,
                         const void* pattern, std::size_t pattern_bytes) {
  if (bytes >= kWorthCores && device_profile(queue_).is_cpu)
    return enqueue_cpu_fill(queue_, array->buffer(), offset, bytes, pattern, pattern_bytes);
  queue_.state().recent.add("fill");
  cl::fill(queue_.get(), array->buffer(), offset, bytes, pattern, pattern_bytes);
}

void OpenCLBackend::copy(const Shape& shape, const StridedView& to, const StridedView& from) {
  if (shape.numel() == 0) return;
  const auto axes = plan_loops(shape, to.strides, from.strides);
  if (to.dtype == from.dtype && is_linear(axes)) {
    const auto size = static_cast<std::int64_t>(size_of(to.dtype));
    if (static_cast<std::size_t>(shape.numel() * size) >= kWorthCores &&
        device_profile(queue_).is_cpu)
      return enqueue_cpu_copy(queue_, to.dtype, axes, to.array->buffer(), to.offset,
                              from.array->buffer(), from.offset);
    queue_.state().recent.add("copy");
    cl::copy(queue_.get(), from.array->buffer(), static_cast<std::size_t>(from.offset * size),
             to.array->buffer(), static_cast<std::size_t>(to.offset * size),
             static_cast<std::size_t>(shape.numel() * size));
    return;
  }
  if (!needs_host(queue_, to.dtype, from.dtype))
    return copy_axes(queue_, axes, to, to.offset, from, from.offset);
  // Both arrays as a whole visit the host; the target comes too because the view may have gaps.
  const auto bytes_at = [this](const StridedView& view) {
    return to_host(view.array, {static_cast<std::int64_t>(view.array->bytes)}, DType::uint8);
  };
  const auto source = bytes_at(from);
  auto target = bytes_at(to);
  const auto place = [](auto bytes, const StridedView& view) {
    return bytes.data() + view.offset * static_cast<std::int64_t>(size_of(view.dtype));
  };
  host_copy(axes, place(target.values<std::uint8_t>(), to), to.dtype,
            place(source.values<std::uint8_t>(), from), from.dtype);
  upload(to.array, 0, target.data(), target.nbytes(), TransferOptions(false, false));
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
  if (device_profile(queue_).is_cpu)
    return enqueue_random_runs(queue_, to->buffer(), dtype, count, seed, distribution);
  const auto launch =
      element_launch(queue_, random_kernel(dtype, distribution), random_blocks(dtype, count),
                     [&] { return scratch_random_problem(queue_, dtype, distribution, count); });
  enqueue_random(queue_, launch, to->buffer(), dtype, count, seed);
}

}  // namespace netcl
