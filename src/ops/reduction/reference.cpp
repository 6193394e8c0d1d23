// The oracle of the reductions: collects the elements of each result and looks at them.
#include <algorithm>
#include <cmath>

#include "ops/reduction/reduction.h"

namespace netcl {
namespace {

using Values = std::vector<double>;

double sum_of(const Values& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

double largest_of(const Values& values) {
  double best = values[0];
  for (const double v : values)
    if (std::isnan(v) || v > best) best = std::isnan(best) ? best : v;
  return best;
}

double place_of(const Values& values, double sign) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isnan(values[i])) return static_cast<double>(i);
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (sign * values[i] > sign * values[best]) best = i;
  return static_cast<double>(best);
}

double variance_of(const Values& values, double correction) {
  const auto n = static_cast<double>(values.size());
  const double mean = sum_of(values) / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return n == 0 ? NAN : squares / std::max(n - correction, 0.0);
}

double logsumexp_of(const Values& values) {
  if (values.empty()) return -INFINITY;
  const double top = largest_of(values);
  if (std::isinf(top) || std::isnan(top)) return top;
  double sum = 0;
  for (const double v : values) sum += std::exp(v - top);
  return top + std::log(sum);
}

double value_of(ReductionKind kind, Values& values, double correction) {
  using K = ReductionKind;
  switch (kind) {
    case K::sum:
      return sum_of(values);
    case K::mean:
      return sum_of(values) / static_cast<double>(values.size());
    case K::prod: {
      double product = 1;
      for (const double v : values) product *= v;
      return product;
    }
    case K::max:
      return largest_of(values);
    case K::min:
      for (auto& v : values) v = -v;
      return -largest_of(values);
    case K::var:
      return variance_of(values, correction);
    case K::logsumexp:
      return logsumexp_of(values);
    case K::argmax:
      return place_of(values, 1);
    default:
      return place_of(values, -1);
  }
}

}  // namespace

void reference_reduction(const ReductionInfo& info, RefCall& call) {
  const auto& x = call.inputs[0];
  const auto axes = reduced_axes(info, call.attributes, x.shape.rank());
  const auto kept = contiguous_strides(reduced_shape(x.shape, axes, true));
  std::vector<Values> of(call.outputs[0].values.size());
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), at = 0;
    for (auto axis = x.shape.rank(); axis-- > 0; rest /= x.shape[axis])
      if (!std::binary_search(axes.begin(), axes.end(), axis))
        at += rest % x.shape[axis] * kept[static_cast<std::size_t>(axis)];
    of[static_cast<std::size_t>(at)].push_back(x.values[i]);
  }
  const double correction =
      info.kind == ReductionKind::var ? call.attributes.number("correction") : 0;
  for (std::size_t i = 0; i < of.size(); ++i)
    call.outputs[0].values[i] = value_of(info.kind, of[i], correction);
}

}  // namespace netcl
