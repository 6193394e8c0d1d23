#include "ops/index_check.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "cl/recording.h"
#include "ops/coordinates.h"
#include "ops/kernels.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kItems = 4096;  // work-items at most; each looks at several elements

// A CPU's host reads fewer bytes than these sooner than it starts a kernel and reads its answer.
constexpr std::int64_t kWorthKernel = 1 << 17;

std::int64_t first_bad(const void* indices, DType dtype, std::int64_t count, std::int64_t size) {
  return visit_dtype(dtype, [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>) {
      const auto* values = static_cast<const T*>(indices);
      for (std::int64_t i = 0; i < count; ++i)
        if (values[i] < 0 || values[i] >= size) return i;
    }
    return kNone;
  });
}

// The position of the first bad index, for the device to write and the host to read.
Tensor enqueue_check(const Tensor& indices, std::int64_t size) {
  const auto& queue = indices.queue();
  const auto bad = Tensor::full(queue, {1}, kNone, DType::int32);
  const auto kernel = op_kernel(
      queue,
      KernelKey("ops/index_check.cl", "index_check", {static_cast<std::int64_t>(indices.dtype())}),
      [&] { return type_macros("IDX", indices.dtype()); });
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, 64));
  OpArgs()
      .tensor(indices)
      .tensor(bad)
      .value(static_cast<std::uint64_t>(indices.numel()))
      .value(size)
      .enqueue(queue, kernel, WorkSize(rounded_up(std::min(indices.numel(), kItems), local)),
               WorkSize(local));
  return bad;
}

void judge(const std::string& op, const Tensor& indices, std::int64_t size, std::int64_t bad) {
  if (bad == kNone) return;
  const auto flat = indices.view(Shape{indices.numel()});
  // Through the flat view: a double would not hold every int64.
  const auto value = flat.narrow(0, bad, 1).to_vector<std::int64_t>()[0];
  fail<ArgumentError>("[{}] indices must be in [0, {}): {} at position ({})", op, size, value,
                      join(coordinates_of(indices.shape(), bad), ", "));
}

}  // namespace

void require_index_dtype(const OpSpec& spec, std::size_t input) {
  const auto dtype = spec.dtype(input);
  check<DtypeError>(dtype == DType::int32 || dtype == DType::int64,
                    "[{}] indices must be int32 or int64: {}", spec.op.name, name_of(dtype));
}

void check_indices(const OpDef& op, const Tensor& indices, std::int64_t size) {
  if (indices.numel() == 0) return;
  if (indices.queue().is_cpu())
    return judge(op.name, indices, size,
                 first_bad(indices.host_data(), indices.dtype(), indices.numel(), size));
  if (device_profile(indices.queue()).is_cpu &&
      static_cast<std::int64_t>(indices.nbytes()) < kWorthKernel)
    return cl::run_check([name = op.name, indices, size] {
      const auto values = indices.to_host();
      judge(name, indices, size, first_bad(values.data(), values.dtype(), values.numel(), size));
    });
  judge_indices(op, indices, size, enqueue_check(indices, size));
}

void judge_indices(const OpDef& op, const Tensor& indices, std::int64_t size, const Tensor& bad) {
  cl::run_check([name = op.name, indices, size, bad] {
    const auto positions = bad.to_vector<std::int32_t>();
    judge(name, indices, size, *std::min_element(positions.begin(), positions.end()));
  });
}

}  // namespace netcl
