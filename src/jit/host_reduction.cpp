#include <limits>

#include "base/parallel.h"
#include "jit/block_evaluator.h"
#include "jit/reduce_group.h"

namespace netcl::fusion {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kTaskElements = 1 << 15;

// Sums run in double, in lanes that are put together at the end.
struct Sum {
  static double identity() { return 0; }
  static double push(double s, double v) { return s + v; }
};

template <bool largest>
struct Extreme {
  static double identity() {
    const auto infinity = std::numeric_limits<double>::infinity();
    return largest ? -infinity : infinity;
  }
  static double push(double s, double v) {
    return (s != s) | (largest ? s > v : s < v) ? s : v;  // NaN stays
  }
};

template <class K, class V>
double reduce_run(const V* values, std::int64_t count) {
  double lanes[kLanes];
  std::fill_n(lanes, kLanes, K::identity());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l)
      lanes[l] = K::push(lanes[l], static_cast<double>(values[i + l]));
  for (; i < count; ++i) lanes[0] = K::push(lanes[0], static_cast<double>(values[i]));
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) lanes[l] = K::push(lanes[l], lanes[l + half]);
  return lanes[0];
}

// One row (or columns side by side) of the chain: elements [begin, end) of its loop, which lie in
// one outer index that starts at `origin`, into `states` (one per inner index).
template <class K, class V>
void reduce_range(const BlockEvaluator<V>& evaluator, typename BlockEvaluator<V>::Scratch& scratch,
                  std::int64_t origin, std::int64_t inner, std::int64_t begin, std::int64_t end,
                  double* states) {
  for (auto at = begin; at < end; at += kBlock) {
    const auto count = std::min(kBlock, end - at);
    const V* values = evaluator.evaluate(at, count, scratch);
    if (inner == 1) {
      states[0] = K::push(states[0], reduce_run<K>(values, count));
      continue;
    }
    for (std::int64_t done = 0; done < count;) {
      const auto column = (at + done - origin) % inner;
      const auto run = std::min(inner - column, count - done);
      for (std::int64_t k = 0; k < run; ++k)
        states[column + k] = K::push(states[column + k], static_cast<double>(values[done + k]));
      done += run;
    }
  }
}

template <class K, class V>
void reduce_all(const ReducedChain& chain, const Tensor& y) {
  const auto& plan = chain.plan;
  const BlockEvaluator<V> evaluator(chain.program, {});
  const auto row = plan.reduced * plan.inner;
  // The number of parts depends on the sizes alone, so that the same call gives the same bits.
  const auto parts = plan.outer >= 64
                         ? 1
                         : std::clamp<std::int64_t>(row / kTaskElements, 1,
                                                    std::max<std::int64_t>(plan.reduced, 1));
  const auto chunk = (plan.reduced + parts - 1) / parts;
  std::vector<double> states(static_cast<std::size_t>(plan.outer * parts * plan.inner),
                             K::identity());
  const auto grain =
      std::max<std::int64_t>(kTaskElements / std::max<std::int64_t>(chunk * plan.inner, 1), 1);
  parallel_for(plan.outer * parts, grain, [&](std::int64_t first, std::int64_t last) {
    typename BlockEvaluator<V>::Scratch scratch(evaluator);
    for (auto task = first; task < last; ++task) {
      const auto part = task % parts, origin = task / parts * row;
      const auto from = std::min(plan.reduced, part * chunk);
      const auto to = std::min(plan.reduced, from + chunk);
      reduce_range<K, V>(evaluator, scratch, origin, plan.inner, origin + from * plan.inner,
                         origin + to * plan.inner,
                         states.data() + static_cast<std::size_t>(task * plan.inner));
    }
  });
  visit_dtype(y.dtype(), [&]<class Y>(Y) {
    auto* to = static_cast<Y*>(y.host_data());
    for (std::int64_t id = 0; id < plan.results(); ++id) {
      const auto* state =
          states.data() +
          static_cast<std::size_t>(id / plan.inner * parts * plan.inner + id % plan.inner);
      double total = K::identity();
      for (std::int64_t part = 0; part < parts; ++part)
        total = K::push(total, state[part * plan.inner]);
      if (chain.kind == ReductionKind::mean) total /= static_cast<double>(plan.reduced);
      to[id] = convert_element<Y>(total);
    }
  });
}

template <class V>
void reduce_kind(const ReducedChain& chain, const Tensor& y) {
  switch (chain.kind) {
    case ReductionKind::max:
      return reduce_all<Extreme<true>, V>(chain, y);
    case ReductionKind::min:
      return reduce_all<Extreme<false>, V>(chain, y);
    default:
      return reduce_all<Sum, V>(chain, y);
  }
}

}  // namespace

Tensor reduce_on_host(const Queue& queue, const ReducedChain& chain) {
  const auto y = Tensor::empty(queue, Shape{chain.plan.results()}, chain.dtype);
  if (chain.program.compute == DType::float64)
    reduce_kind<double>(chain, y);
  else
    reduce_kind<float>(chain, y);
  return y;
}

}  // namespace netcl::fusion
