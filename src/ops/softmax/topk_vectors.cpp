// topk on OpenCL CPUs: which of the kernels of topk_vectors.cl and topk_sort.cl, and with how many
// work-items.
#include <algorithm>
#include <climits>

#include "base/format.h"
#include "ops/softmax/family.h"
#include "ops/softmax/rows.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/softmax/topk_vectors.cl";
constexpr const char* kSortPath = "ops/softmax/topk_sort.cl";
constexpr std::int64_t kMostInLanes = 8;       // the best that registers hold, a lane per row
constexpr std::int64_t kLongestInLanes = 48;   // of rows one behind the other
constexpr std::int64_t kMost = 64;             // that are kept in order while looking
constexpr std::int64_t kPartElements = 16384;  // of a part of a row
constexpr std::int64_t kItemsPerUnit = 8;

class TopK {
 public:
  TopK(const Queue& queue, const Tensor& x, const Tensor& values, const Tensor& indices,
       std::int64_t k, bool largest)
      : queue_(queue), x_(x), values_(values), indices_(indices), k_(k), largest_(largest) {}

  void lanes(const RowPlan& plan) const {
    const bool side_by_side = plan.inner > 1;
    const auto groups =
        static_cast<std::int64_t>(ceil_div(side_by_side ? plan.inner : plan.outer, vec()));
    const auto all = side_by_side ? plan.outer * groups : groups;
    const RowPlan work{all, plan.n * vec(), 1};
    OpArgs args;
    args.tensor(x_).tensor(values_).tensor(indices_);
    args.value(plan.outer).value(plan.n).value(plan.inner).value(groups);
    const auto kernel =
        kernel_of(kPath, "topk_lanes", 2 * k_ + (side_by_side ? 1 : 0),
                  define("K", k_) + define("SIDE_BY_SIDE", std::int64_t{side_by_side ? 1 : 0}));
    enqueue_blocks(queue_, kernel, args, work);
  }

  // Rows one behind the other.
  void rows(std::int64_t outer, std::int64_t n) const {
    const auto wanted = ceil_div(kItemsPerUnit * units(), outer);
    const auto parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1,
                                                std::max<std::int64_t>(n / kPartElements, 1));
    const auto kept = parts > 1 ? outer * parts * k_ : 1;
    const auto some_values = Tensor::empty(queue_, Shape{kept}, compute_dtype(x_.dtype()));
    const auto some_places = Tensor::empty(queue_, Shape{kept}, DType::int64);
    OpArgs args;
    args.tensor(x_).tensor(values_).tensor(indices_).tensor(some_values).tensor(some_places);
    args.value(outer).value(n).value(static_cast<std::int32_t>(k_)).value(parts);
    const auto most = define("MOST", kMost);
    const auto kernel = kernel_of(kPath, "topk_rows", 0, most);
    if (parts == 1) return enqueue_blocks(queue_, kernel, args, {outer, n, 1});
    args.value(std::int64_t{1}).enqueue(queue_, kernel, static_cast<std::size_t>(outer * parts), 1);
    OpArgs merged;
    merged.tensor(values_).tensor(indices_).tensor(some_values).tensor(some_places);
    merged.value(outer).value(static_cast<std::int32_t>(k_)).value(parts);
    merged.enqueue(queue_, kernel_of(kPath, "topk_merge", 0, most), static_cast<std::size_t>(outer),
                   1);
  }

  void sort(std::int64_t outer, std::int64_t n) const {
    const auto size = static_cast<std::int64_t>(size_of(compute_dtype(x_.dtype())));
    const auto items = std::min(outer, kItemsPerUnit * units()), bytes = 2 * (size + 4);
    const auto scratch = Tensor::empty(queue_, Shape{items * n * bytes}, DType::uint8);
    OpArgs args;
    args.tensor(x_).tensor(values_).tensor(indices_).tensor(scratch);
    args.value(outer).value(n).value(k_).value(items);
    const auto key = size == 8 ? "ulong" : "uint";
    const auto kernel =
        kernel_of(kSortPath, "topk_sort", 0,
                  define("KEY", key) + define("BITS", 8 * size) + define("SCRATCH", bytes) +
                      define("AS_KEY(v)", fmt::format("as_{}(v)", key)));
    args.enqueue(queue_, kernel, static_cast<std::size_t>(items), 1);
  }

  std::int64_t vec() const { return row_lanes(x_.dtype(), device_profile(queue_)); }

 private:
  std::int64_t units() const { return device_profile(queue_).compute_units; }

  KernelPtr kernel_of(const char* path, const char* name, std::int64_t bits,
                      const std::string& more) const {
    const auto compute = compute_dtype(x_.dtype());
    const bool is_float = is_floating(compute);
    const char* lowest = is_float                  ? "((ACC)(-INFINITY))"
                         : compute == DType::int64 ? "LONG_MIN"
                                                   : "INT_MIN";
    return vector_kernel(queue_, path, name, x_.dtype(), 2 * bits + (largest_ ? 1 : 0),
                         define("LARGEST", std::int64_t{largest_ ? 1 : 0}) +
                             define("LOWEST", lowest) + (is_float ? define("FLOATING", 1) : "") +
                             more);
  }

  const Queue& queue_;
  const Tensor &x_, &values_, &indices_;
  const std::int64_t k_;
  const bool largest_;
};

}  // namespace

bool topk_on_cpu(const OpCall& call, const RowPlan& plan) {
  const auto k = call.attributes.integer("k");
  const bool largest = call.attributes.flag("largest");
  if (!device_profile(call.queue).is_cpu || plan.n > INT_MAX) return false;
  if (call.outputs[0].numel() == 0) return true;
  const auto &x = call.inputs[0], &values = call.outputs[0], &indices = call.outputs[1];
  if (plan.inner > 1) {
    const TopK top(call.queue, x, values, indices, k, largest);
    // Elements next to each other are lanes; where there are few of them, rows are put together.
    if (k <= kMostInLanes && 2 * plan.inner > top.vec()) {
      top.lanes(plan);
      return true;
    }
    const auto rows = x.reshape({plan.outer, plan.n, plan.inner}).permute({0, 2, 1}).contiguous();
    const Shape kept{plan.outer, plan.inner, k};
    const auto some = Tensor::empty(call.queue, kept, x.dtype());
    const auto places = Tensor::empty(call.queue, kept, DType::int64);
    OpCall joined{call.op, call.queue, {rows}, call.attributes, {some, places}};
    topk_on_cpu(joined, {plan.rows(), plan.n, 1});
    values.reshape({plan.outer, k, plan.inner}).copy_from(some.permute({0, 2, 1}));
    indices.reshape({plan.outer, k, plan.inner}).copy_from(places.permute({0, 2, 1}));
    return true;
  }
  const TopK top(call.queue, x, values, indices, k, largest);
  if (k <= kMostInLanes && plan.n <= kLongestInLanes)
    top.lanes(plan);
  else if (k <= kMost)
    top.rows(plan.outer, plan.n);
  else
    top.sort(plan.outer, plan.n);
  return true;
}

}  // namespace netcl
