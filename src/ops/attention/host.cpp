// Attention on the CPU backend: products of blocks of queries by the library where there is one,
// loops of our own for doubles and without it.
#include "ops/attention/host.h"

#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "ops/attention/plan.h"
#include "ops/onednn.h"
#include "ops/softmax/row_math.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

// ---- without a library: the kernels' loops, a query or a key per iteration

template <class T>
struct HostAttention {
  using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const OpCall& call;
  AttentionPlan plan;
  const T *q, *k, *v;

  explicit HostAttention(const OpCall& one) : call(one), plan(plan_attention(one)) {
    q = data(0), k = data(1), v = data(2);
  }
  const T* data(std::size_t input) const {
    return static_cast<const T*>(call.inputs[input].host_data());
  }
  static V value(T element) { return convert_element<V>(element); }

  V score(std::int64_t z, std::int64_t l, std::int64_t s) const {
    constexpr V kNever = -std::numeric_limits<V>::infinity();
    if (plan.causal && s > l) return kNever;
    const auto at = z / plan.inner * plan.mask_strides[0] + z % plan.inner * plan.mask_strides[1] +
                    l * plan.mask_strides[2] + s * plan.mask_strides[3];
    if (plan.mask_kind() == 1 && !static_cast<const bool*>(plan.mask.host_data())[at])
      return kNever;
    const T *x = q + (z * plan.L + l) * plan.E, *w = k + (z * plan.S + s) * plan.E;
    V dot = 0;
    for (std::int64_t e = 0; e < plan.E; ++e) dot += value(x[e]) * value(w[e]);
    dot *= static_cast<V>(plan.scale);
    return plan.mask_kind() == 2 ? dot + value(static_cast<const T*>(plan.mask.host_data())[at])
                                 : dot;
  }

  void forward() const {
    parallel_for(plan.batches * plan.L, 1, [this](std::int64_t begin, std::int64_t end) {
      std::vector<V> weight(static_cast<std::size_t>(plan.S)),
          sum(static_cast<std::size_t>(plan.F));
      for (auto row = begin; row < end; ++row) forward_row(row, weight, sum);
    });
  }

  void forward_row(std::int64_t row, std::vector<V>& weight, std::vector<V>& sum) const {
    const auto z = row / plan.L, l = row % plan.L;
    V largest = -std::numeric_limits<V>::infinity(), total = 0;
    for (std::int64_t s = 0; s < plan.S; ++s) {
      weight[static_cast<std::size_t>(s)] = score(z, l, s);
      largest = std::fmax(largest, weight[static_cast<std::size_t>(s)]);
    }
    std::fill(sum.begin(), sum.end(), V{0});
    const V base = std::isinf(largest) && largest < 0 ? V{0} : largest;
    for (std::int64_t s = 0; s < plan.S; ++s) {
      const V w = std::exp(weight[static_cast<std::size_t>(s)] - base);
      total += w;
      if (w == 0) continue;
      const T* from = v + (z * plan.S + s) * plan.F;
      for (std::size_t f = 0; f < sum.size(); ++f) sum[f] += w * value(from[f]);
    }
    auto* y = static_cast<T*>(call.outputs[0].host_data()) + row * plan.F;
    for (std::size_t f = 0; f < sum.size(); ++f)
      y[f] = convert_element<T>(plan.S == 0 ? V{0} : sum[f] / total);
    static_cast<V*>(call.outputs[1].host_data())[row] = largest + std::log(total);
  }

  // p and ds of a pair; false when the query does not see the key.
  bool pair(std::int64_t z, std::int64_t l, std::int64_t s, V& p, V& ds) const {
    const V one = score(z, l, s);
    if (std::isinf(one) && one < 0) return false;
    const auto row = z * plan.L + l;
    p = std::exp(one - static_cast<const V*>(call.inputs[5].host_data())[row]);
    const T *y = data(4) + row * plan.F, *dy = data(6) + row * plan.F;
    const T* from = v + (z * plan.S + s) * plan.F;
    ds = call.has(7) ? static_cast<const V*>(call.inputs[7].host_data())[row] : V{0};
    for (std::int64_t f = 0; f < plan.F; ++f) ds += value(dy[f]) * (value(from[f]) - value(y[f]));
    ds *= p * static_cast<V>(plan.scale);
    return true;
  }

  void backward() const {
    parallel_for(plan.batches * plan.L, 1, [this](std::int64_t begin, std::int64_t end) {
      std::vector<V> sum(static_cast<std::size_t>(plan.E));
      for (auto row = begin; row < end; ++row) {
        std::fill(sum.begin(), sum.end(), V{0});
        for (std::int64_t s = 0; s < plan.S; ++s) {
          V p, ds;
          if (!pair(row / plan.L, row % plan.L, s, p, ds)) continue;
          add(sum.data(), ds, k + (row / plan.L * plan.S + s) * plan.E, plan.E);
        }
        store(0, row, sum.data(), plan.E);
      }
    });
    parallel_for(plan.batches * plan.S, 1, [this](std::int64_t begin, std::int64_t end) {
      std::vector<V> dk(static_cast<std::size_t>(plan.E)), dv(static_cast<std::size_t>(plan.F));
      for (auto row = begin; row < end; ++row) {
        std::fill(dk.begin(), dk.end(), V{0});
        std::fill(dv.begin(), dv.end(), V{0});
        const auto z = row / plan.S;
        for (std::int64_t l = 0; l < plan.L; ++l) {
          V p, ds;
          if (!pair(z, l, row % plan.S, p, ds)) continue;
          add(dk.data(), ds, q + (z * plan.L + l) * plan.E, plan.E);
          add(dv.data(), p, data(6) + (z * plan.L + l) * plan.F, plan.F);
        }
        store(1, row, dk.data(), plan.E);
        store(2, row, dv.data(), plan.F);
      }
    });
  }

  static void add(V* to, V factor, const T* from, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] += factor * value(from[i]);
  }
  void store(std::size_t output, std::int64_t row, const V* from, std::int64_t n) const {
    auto* to = static_cast<T*>(call.outputs[output].host_data()) + row * n;
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<T>(from[i]);
  }
};

template <class F>
void on_host(const OpCall& call, F&& f) {
  if (call.dtype() == DType::float64) return f(HostAttention<double>(call));
  if (call.dtype() == DType::float16) return f(HostAttention<float16_t>(call));
  f(HostAttention<float>(call));
}

// ---- with it

constexpr std::int64_t kRows = 256;          // of queries whose scores lie in memory
constexpr std::int64_t kElements = 1 << 14;  // that are worth a thread

template <class T>
class HostProducts {
 public:
  explicit HostProducts(const OpCall& one)
      : call_(one), plan_(plan_attention(one)), rows_(std::min(kRows, plan_.L)) {}

  // False where the library cannot compute this, with nothing done.
  bool forward() {
    if (!able(1) || !able(2)) return false;
    auto* lse = static_cast<float*>(call_.outputs[1].host_data());
    for (std::int64_t z = 0; z < plan_.batches; ++z) {
      const float *q = batch(0, z, plan_.L * plan_.E), *k = batch(1, z, plan_.S * plan_.E),
                  *v = batch(2, z, plan_.S * plan_.F);
      for (std::int64_t from = 0; from < plan_.L; from += rows_) {
        const auto count = std::min(rows_, plan_.L - from);
        float* scores = memory(3, count * plan_.S);
        onednn::sgemm(count, plan_.S, plan_.E, {q + from * plan_.E, false, plan_.E},
                      {k, true, plan_.E}, scores, plan_.S);
        for_rows(count, plan_.S, [&](std::int64_t i) {
          float* row = scores + i * plan_.S;
          mask(row, z, from + i);
          const auto& math = row_math::functions<float>();
          const float largest = math.largest(row, plan_.S);
          const bool empty = std::isinf(largest) && largest < 0;
          const float total = math.exponentials(row, plan_.S, empty ? 0 : largest);
          math.move(row, plan_.S, 0, 1 / total);
          lse[z * plan_.L + from + i] = largest + std::log(total);
        });
        float* sums = memory(4, count * plan_.F);
        onednn::sgemm(count, plan_.F, plan_.S, {scores, false, plan_.S}, {v, false, plan_.F}, sums,
                      plan_.F);
        store(0, (z * plan_.L + from) * plan_.F, sums, count * plan_.F, 1);
      }
    }
    return true;
  }

  bool backward() {
    if (!able(0) || !able(1) || !able(2) || !able(6)) return false;
    const auto* lse = static_cast<const float*>(call_.inputs[5].host_data());
    const auto* dlse =
        call_.has(7) ? static_cast<const float*>(call_.inputs[7].host_data()) : nullptr;
    const auto E = plan_.E, F = plan_.F, S = plan_.S;
    const auto scale = static_cast<float>(plan_.scale);
    const auto& math = row_math::functions<float>();
    for (std::int64_t z = 0; z < plan_.batches; ++z) {
      const float *q = batch(0, z, plan_.L * E), *k = batch(1, z, S * E), *v = batch(2, z, S * F),
                  *y = batch(4, z, plan_.L * F), *dy = batch(6, z, plan_.L * F);
      float *dk = memory(8, S * E), *dv = memory(9, S * F);
      std::fill_n(dk, S * E, 0.0f), std::fill_n(dv, S * F, 0.0f);
      for (std::int64_t from = 0; from < plan_.L; from += rows_) {
        const auto count = std::min(rows_, plan_.L - from);
        const float *q_at = q + from * E, *dy_at = dy + from * F;
        float *p = memory(3, count * S), *ds = memory(5, count * S);
        onednn::sgemm(count, S, E, {q_at, false, E}, {k, true, E}, p, S);
        onednn::sgemm(count, S, F, {dy_at, false, F}, {v, true, F}, ds, S);
        for_rows(count, S, [&](std::int64_t i) {
          float *row = p + i * S, *slope = ds + i * S;
          mask(row, z, from + i);
          const auto at = z * plan_.L + from + i;
          const float base = std::isinf(lse[at]) && lse[at] < 0 ? 0 : lse[at];
          const float delta =
              math.dot(dy_at + i * F, y + (from + i) * F, F) - (dlse != nullptr ? dlse[at] : 0);
          math.exponentials(row, S, base);
          math.move(slope, S, -delta, scale);
          math.multiply(slope, row, S);
        });
        float* dq = memory(10, count * E);
        onednn::sgemm(count, E, S, {ds, false, S}, {k, false, E}, dq, E);
        store(0, (z * plan_.L + from) * E, dq, count * E, 1);
        add_product(ds, q_at, count, E, dk);
        add_product(p, dy_at, count, F, dv);
      }
      store(1, z * S * E, dk, S * E, 1);
      store(2, z * S * F, dv, S * F, 1);
    }
    return true;
  }

 private:
  // to (S, n) += weights^T (S, count) from (count, n)
  void add_product(const float* weights, const float* from, std::int64_t count, std::int64_t n,
                   float* to) {
    float* sum = memory(11, plan_.S * n);
    onednn::sgemm(plan_.S, n, count, {weights, true, plan_.S}, {from, false, n}, sum, n);
    row_math::functions<float>().add(to, sum, plan_.S * n);
  }

  // Whether the library is there, and the input has only finite elements: a weight of 0 must not
  // meet others.
  bool able(std::size_t input) const {
    if (!onednn::is_available() || plan_.S == 0 || plan_.F == 0) return false;
    const auto* from = static_cast<const T*>(call_.inputs[input].host_data());
    float odd = 0;
    for (std::int64_t i = 0; i < call_.inputs[input].numel(); ++i)
      odd += convert_element<float>(from[i]) * 0;
    return odd == 0;
  }

  float* memory(std::size_t slot, std::int64_t n) {
    auto& own = memory_[slot];
    if (static_cast<std::int64_t>(own.size()) < n) own.resize(static_cast<std::size_t>(n));
    return own.data();
  }

  // n elements of a batch of an input, as floats.
  const float* batch(std::size_t input, std::int64_t z, std::int64_t n) {
    const auto* from = static_cast<const T*>(call_.inputs[input].host_data()) + z * n;
    if constexpr (std::is_same_v<T, float>) {
      return from;
    } else {
      float* to = memory(input, n);
      for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<float>(from[i]);
      return to;
    }
  }

  void store(std::size_t output, std::int64_t at, const float* from, std::int64_t n, float factor) {
    auto* to = static_cast<T*>(call_.outputs[output].host_data()) + at;
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<T>(from[i] * factor);
  }

  template <class F>
  static void for_rows(std::int64_t rows, std::int64_t n, F&& f) {
    parallel_for(rows, std::max<std::int64_t>(kElements / n, 1),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto i = begin; i < end; ++i) f(i);
                 });
  }

  // Products of query l become masked scores.
  void mask(float* row, std::int64_t z, std::int64_t l) const {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    row_math::functions<float>().move(row, plan_.S, 0, static_cast<float>(plan_.scale));
    const auto* strides = plan_.mask_strides;
    const auto at = z / plan_.inner * strides[0] + z % plan_.inner * strides[1] + l * strides[2];
    if (plan_.mask_kind() == 1) {
      const auto* seen = static_cast<const bool*>(plan_.mask.host_data()) + at;
      for (std::int64_t s = 0; s < plan_.S; ++s) row[s] = seen[s * strides[3]] ? row[s] : kNever;
    } else if (plan_.mask_kind() == 2) {
      const auto* added = static_cast<const T*>(plan_.mask.host_data()) + at;
      for (std::int64_t s = 0; s < plan_.S; ++s)
        row[s] += convert_element<float>(added[s * strides[3]]);
    }
    if (plan_.causal)
      for (std::int64_t s = l + 1; s < plan_.S; ++s) row[s] = kNever;
  }

  const OpCall& call_;
  AttentionPlan plan_;
  std::int64_t rows_;
  std::array<std::vector<float>, 12> memory_;  // by input; 3 and 5 to 11 for what is computed
};

template <class F>
bool with_products(const OpCall& call, F&& f) {
  if (call.dtype() == DType::float64) return false;
  if (call.dtype() == DType::float16) return f(HostProducts<float16_t>(call));
  return f(HostProducts<float>(call));
}

}  // namespace

void attention_on_host(const OpCall& call) {
  if (with_products(call, [](auto&& products) { return products.forward(); })) return;
  on_host(call, [](const auto& host) { host.forward(); });
}

void attention_backward_on_host(const OpCall& call) {
  if (with_products(call, [](auto&& products) { return products.backward(); })) return;
  on_host(call, [](const auto& host) { host.backward(); });
}

}  // namespace netcl
