// The public functions of softmax and its relatives.
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/kernels.h"
#include "ops/registry.h"

namespace netcl::ops {
namespace {

Tensor floating(const Tensor& x) { return x ? x.astype(floating_of(x.dtype())) : x; }

Tensor along(const char* op, const Tensor& x, std::int64_t axis) {
  return apply(op, {floating(x)}, {{"axis", x ? normalize_axis(axis, x.ndim(), op) : 0}});
}

// bool and the small integers are counted as int32.
Tensor numeric(const Tensor& x) {
  return x && !is_floating(x.dtype()) ? x.astype(compute_dtype(x.dtype())) : x;
}

// `count` is the number of rows that a mean divides by.
template <class Count>
Tensor reduced(const Tensor& losses, Reduction reduction, Count&& count) {
  if (reduction == Reduction::none) return losses;
  // In the accumulator's dtype: the sum of many losses passes the largest half.
  const auto wide = compute_dtype(losses.dtype());
  const auto total = sum(cast(losses, wide));
  return cast(reduction == Reduction::sum ? total : div(total, count()), losses.dtype());
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t axis) { return along("softmax", x, axis); }
Tensor log_softmax(const Tensor& x, std::int64_t axis) { return along("log_softmax", x, axis); }

Tensor cumsum(const Tensor& x, std::int64_t axis) {
  return apply("cumsum", {numeric(x)},
               {{"axis", x ? normalize_axis(axis, x.ndim(), "cumsum") : 0}, {"reverse", false}});
}

std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  auto results = call_op(
      find_op("topk"), {numeric(x)},
      {{"axis", x ? normalize_axis(axis, x.ndim(), "topk") : 0}, {"k", k}, {"largest", largest}});
  return {results[0], results[1]};
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction,
                     double label_smoothing, std::int64_t ignore_index) {
  const auto losses = apply("cross_entropy", {logits, labels},
                            {{"label_smoothing", label_smoothing}, {"ignore_index", ignore_index}});
  // Longer ones are worth a sum that all cores share.
  constexpr std::int64_t kMostRows = 4096;
  if (reduction == Reduction::mean && losses.numel() > 0 && losses.numel() <= kMostRows)
    return apply("labelled_mean", {losses, labels}, {{"ignore_index", ignore_index}});
  return reduced(losses, reduction, [&]() -> Operand {
    // As a number on the device: nobody has to wait for it.
    const auto counts = ne(labels, static_cast<double>(ignore_index));
    return sum(counts.astype(compute_dtype(losses.dtype())));
  });
}

Tensor cross_entropy_probabilities(const Tensor& logits, const Tensor& probabilities,
                                   Reduction reduction) {
  const auto losses = apply("cross_entropy_probabilities", {logits, probabilities});
  return reduced(losses, reduction,
                 [&]() -> Operand { return static_cast<double>(losses.numel()); });
}

}  // namespace netcl::ops
