#include "ops/index_check.h"

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

std::int64_t first_bad_on_host(const Tensor& indices, std::int64_t size) {
  return visit_dtype(indices.dtype(), [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>) {
      const auto* values = static_cast<const T*>(indices.host_data());
      for (std::int64_t i = 0; i < indices.numel(); ++i)
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
    return judge(op.name, indices, size, first_bad_on_host(indices, size));
  const auto bad = enqueue_check(indices, size);
  cl::run_check([name = op.name, indices, size, bad] {
    judge(name, indices, size, static_cast<std::int64_t>(bad.item()));
  });
}

}  // namespace netcl
