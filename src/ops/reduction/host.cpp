// Reductions of the CPU backend: the same states as in states.cl, in C++.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/wrapping.h"
#include "ops/reduction/reduction.h"
#include "ops/softmax/row_math.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

constexpr std::int64_t kBlock = 128, kLanes = 16, kGrain = 1 << 15;

template <class V>
using wide_t = std::conditional_t<std::is_integral_v<V>, std::int64_t, V>;
template <class V>
using plain_t = std::conditional_t<std::is_integral_v<V>, Wrapping<std::int64_t>, V>;

template <class V>
struct Sum {
  using State = plain_t<V>;
  static constexpr State identity() { return State(0); }
  static State push(State s, V v, std::int64_t) { return s + static_cast<State>(v); }
  static State combine(State a, State b) { return a + b; }
  static wide_t<V> finish(State s, std::int64_t, double) { return static_cast<wide_t<V>>(s); }
};

template <class V>
struct Mean : Sum<V> {
  static V finish(V s, std::int64_t n, double) { return s / static_cast<V>(n); }
};

template <class V>
struct Prod {
  using State = plain_t<V>;
  static constexpr State identity() { return State(1); }
  static State push(State s, V v, std::int64_t) { return s * static_cast<State>(v); }
  static State combine(State a, State b) { return a * b; }
  static wide_t<V> finish(State s, std::int64_t, double) { return static_cast<wide_t<V>>(s); }
};

template <class V, bool largest>
struct Extreme {
  using State = V;
  using Limits = std::numeric_limits<V>;
  static constexpr V identity() {
    if constexpr (Limits::has_infinity) return largest ? -Limits::infinity() : Limits::infinity();
    return largest ? Limits::lowest() : Limits::max();
  }
  static V push(V s, V v, std::int64_t) {
    return (s != s) | (largest ? s > v : s < v) ? s : v;  // NaN stays
  }
  static V combine(V a, V b) { return push(a, b, 0); }
  static V finish(V s, std::int64_t, double) { return s; }
};

template <class V>
struct LogSumExp {
  struct State {
    V top, sum;
  };
  static constexpr State identity() { return {-std::numeric_limits<V>::infinity(), 0}; }
  static V scaled(V a, V top) { return a == top ? V(1) : std::exp(a - top); }
  static State push(State s, V v, std::int64_t) {
    return v > s.top ? State{v, s.sum * scaled(s.top, v) + 1}
                     : State{s.top, s.sum + scaled(v, s.top)};
  }
  static State combine(State a, State b) {
    const V top = a.top > b.top ? a.top : b.top;
    return {top, a.sum * scaled(a.top, top) + b.sum * scaled(b.top, top)};
  }
  static State whole(const V* x, std::int64_t first, std::int64_t last, V) {
    const auto& math = row_math::functions<V>();
    const V top = math.largest(x + first, last - first);
    if (std::isfinite(top)) return {top, math.sum_exp(x + first, last - first, top)};
    State s = identity();
    for (auto i = first; i < last; ++i) s = push(s, x[i], i);
    return s;
  }
  static V finish(State s, std::int64_t, double) { return s.top + std::log(s.sum); }
};

// Relative to the first element of each result: a mean far from zero costs no digits.
template <class V>
struct Variance {
  static constexpr bool kShifted = true;
  struct State {
    V count, mean, squares;
  };
  static constexpr State identity() { return {0, 0, 0}; }
  static State push(State s, V v, std::int64_t) {
    const V count = s.count + 1, delta = v - s.mean, mean = s.mean + delta / count;
    return {count, mean, s.squares + delta * (v - mean)};
  }
  static State combine(State a, State b) {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const V count = a.count + b.count, delta = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + delta * part, a.squares + b.squares + delta * delta * a.count * part};
  }
  // Elements [first, last) of a row, relative to `shift`, which is its first.
  static State whole(const V* x, std::int64_t first, std::int64_t last, V shift) {
    thread_local std::vector<V> piece;
    piece.assign(x + first, x + last);
    const auto& math = row_math::functions<V>();
    const auto n = last - first;
    math.move(piece.data(), n, -shift, 1);
    const V mean = math.sum(piece.data(), n) / static_cast<V>(n);
    return {static_cast<V>(n), mean, math.squares(piece.data(), n, mean)};
  }
  static V finish(State s, std::int64_t n, double correction) {
    if (n == 0) return std::numeric_limits<V>::quiet_NaN();
    return s.squares / std::max(static_cast<V>(n) - static_cast<V>(correction), V(0));
  }
};

template <class V, bool largest>
struct Place {
  struct State {
    V value;
    std::int64_t index;
  };
  static constexpr State identity() { return {0, -1}; }
  static State push(State s, V v, std::int64_t i) { return combine(s, {v, i}); }
  static State combine(State a, State b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    if (nan_a != nan_b) return nan_a ? a : b;
    if (largest ? b.value > a.value : b.value < a.value) return b;
    if (largest ? a.value > b.value : a.value < b.value) return a;
    return a.index < b.index ? a : b;
  }
  static State whole(const V* x, std::int64_t first, std::int64_t last, V) {
    if constexpr (std::is_floating_point_v<V>) {
      const auto& math = row_math::functions<V>();
      const V best = (largest ? math.largest : math.smallest)(x + first, last - first);
      auto i = first;
      while (best == best ? x[i] != best : x[i] == x[i]) ++i;
      return {best, i};
    } else {
      return identity();
    }
  }
  static std::int64_t finish(State s, std::int64_t, double) { return s.index; }
};

// Results `column` ... of one outer index, at most kLanes of them, over rows [first, last).
template <class K, class T>
struct Columns {
  using V = arithmetic_t<T>;
  using State = typename K::State;
  static constexpr bool kShifted = requires { K::kShifted; };

  static V moved(T value, V shift) {
    if constexpr (kShifted) return static_cast<V>(value) - shift;
    return static_cast<V>(value);
  }

  static void reduce(const T* x, std::int64_t inner, std::int64_t lanes, std::int64_t first,
                     std::int64_t last, State* total) {
    V shift[kLanes] = {};
    if constexpr (kShifted)
      for (std::int64_t l = 0; first < last && l < lanes; ++l) shift[l] = static_cast<V>(x[l]);
    for (std::int64_t a = first; a < last; a += kBlock) {
      const auto end = std::min(last, a + kBlock);
      State part[kLanes];
      std::fill_n(part, kLanes, K::identity());
      for (std::int64_t i = a; i < end; ++i)
        for (std::int64_t l = 0; l < lanes; ++l)
          part[l] = K::push(part[l], moved(x[i * inner + l], shift[l]), i);
      for (std::int64_t l = 0; l < lanes; ++l) total[l] = K::combine(total[l], part[l]);
    }
  }

  // Rows whose elements are computed with as they are have loops for the processor's vectors.
  static constexpr bool kFast = std::is_same_v<T, V> && std::is_floating_point_v<V> && requires {
    K::whole(static_cast<const V*>(nullptr), 0, 0, V(0));
  };

  static State reduce_fast(const T* x, std::int64_t first, std::int64_t last) {
    constexpr std::int64_t kPiece = 4096;
    State total = K::identity();
    for (auto from = first; from < last; from += kPiece)
      total = K::combine(total, K::whole(x, from, std::min(last, from + kPiece), x[0]));
    return total;
  }

  // A row: the lanes take turns, then they are put together.
  static State reduce_row(const T* x, std::int64_t first, std::int64_t last) {
    if constexpr (kFast) return reduce_fast(x, first, last);
    const V shift = kShifted && first < last ? static_cast<V>(x[0]) : V(0);
    State total[kLanes], part[kLanes];
    std::fill_n(total, kLanes, K::identity());
    const auto whole = first + (last - first) / kLanes * kLanes;
    for (std::int64_t a = first; a < whole; a += kBlock * kLanes) {
      const auto end = std::min(whole, a + kBlock * kLanes);
      std::fill_n(part, kLanes, K::identity());
      for (std::int64_t i = a; i < end; i += kLanes)
        for (std::int64_t l = 0; l < kLanes; ++l)
          part[l] = K::push(part[l], moved(x[i + l], shift), i + l);
      for (std::int64_t l = 0; l < kLanes; ++l) total[l] = K::combine(total[l], part[l]);
    }
    for (std::int64_t i = whole; i < last; ++i)
      total[i - whole] = K::push(total[i - whole], moved(x[i], shift), i);
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
      for (std::int64_t l = 0; l < half; ++l) total[l] = K::combine(total[l], total[l + half]);
    return total[0];
  }
};

template <class K, class T, class Y>
void reduce(const ReductionPlan& plan, const T* x, Y* y, double correction) {
  using State = typename K::State;
  const auto strips = (plan.inner + kLanes - 1) / kLanes;
  const auto owners = plan.outer * strips;
  const auto width = std::min(plan.inner, kLanes);
  // Long columns and rows are split too: there may be only one.
  const auto chunk = std::max<std::int64_t>(kGrain * 2 / width, 1);
  const auto parts =
      owners >= 64 ? 1 : std::max<std::int64_t>((plan.reduced + chunk - 1) / chunk, 1);
  std::vector<State> states(static_cast<std::size_t>(plan.results() * parts), K::identity());
  const auto step = parts == 1 ? plan.reduced : chunk;
  const auto grain = std::max<std::int64_t>(kGrain / std::max<std::int64_t>(step * width, 1), 1);
  parallel_for(owners * parts, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto id = begin; id < end; ++id) {
      const auto part = id % parts, strip = id / parts % strips, o = id / parts / strips;
      const auto first = part * step, last = std::min(plan.reduced, first + step);
      const T* from = x + o * plan.reduced * plan.inner + strip * kLanes;
      State lanes[kLanes];
      std::fill_n(lanes, kLanes, K::identity());
      const auto count = std::min(kLanes, plan.inner - strip * kLanes);
      if (plan.inner == 1)
        lanes[0] = Columns<K, T>::reduce_row(from, first, last);
      else
        Columns<K, T>::reduce(from, plan.inner, count, first, last, lanes);
      for (std::int64_t l = 0; l < count; ++l)
        states[static_cast<std::size_t>((o * plan.inner + strip * kLanes + l) * parts + part)] =
            lanes[l];
    }
  });
  for (std::int64_t i = 0; i < plan.results(); ++i) {
    auto total = states[static_cast<std::size_t>(i * parts)];
    for (std::int64_t part = 1; part < parts; ++part)
      total = K::combine(total, states[static_cast<std::size_t>(i * parts + part)]);
    y[i] = convert_element<Y>(K::finish(total, plan.reduced, correction));
  }
}

template <class K, class T>
void reduce_to(const ReductionPlan& plan, const Tensor& x, const Tensor& y, double correction) {
  visit_dtype(y.dtype(), [&]<class Y>(Y) {
    if constexpr (std::is_same_v<Y, T> || std::is_same_v<Y, std::int64_t>)
      reduce<K, T, Y>(plan, static_cast<const T*>(x.host_data()), static_cast<Y*>(y.host_data()),
                      correction);
  });
}

template <class T>
void reduce_kind(ReductionKind kind, const ReductionPlan& plan, const Tensor& x, const Tensor& y,
                 double correction) {
  using V = arithmetic_t<T>;
  using R = ReductionKind;
  switch (kind) {
    case R::sum:
      return reduce_to<Sum<V>, T>(plan, x, y, correction);
    case R::prod:
      return reduce_to<Prod<V>, T>(plan, x, y, correction);
    case R::max:
      return reduce_to<Extreme<V, true>, T>(plan, x, y, correction);
    case R::min:
      return reduce_to<Extreme<V, false>, T>(plan, x, y, correction);
    case R::argmax:
      return reduce_to<Place<V, true>, T>(plan, x, y, correction);
    case R::argmin:
      return reduce_to<Place<V, false>, T>(plan, x, y, correction);
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<V>) {
    if (kind == R::mean) return reduce_to<Mean<V>, T>(plan, x, y, correction);
    if (kind == R::var) return reduce_to<Variance<V>, T>(plan, x, y, correction);
    if (kind == R::logsumexp) return reduce_to<LogSumExp<V>, T>(plan, x, y, correction);
  }
}

}  // namespace

void host_reduction(const ReductionInfo& info, const OpCall& call) {
  const auto plan = plan_reduction(call.inputs[0].shape(),
                                   reduced_axes(info, call.attributes, call.inputs[0].ndim()));
  const auto x =
      plan.order.empty() ? call.inputs[0] : call.inputs[0].permute(plan.order).contiguous();
  const double correction =
      info.kind == ReductionKind::var ? call.attributes.number("correction") : 0;
  visit_dtype(x.dtype(), [&]<class T>(T) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, float16_t> || std::is_same_v<T, std::int32_t> ||
                  std::is_same_v<T, std::int64_t>)
      reduce_kind<T>(info.kind, plan, x, call.outputs[0], correction);
  });
}

}  // namespace netcl
