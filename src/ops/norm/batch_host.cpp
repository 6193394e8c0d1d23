// Batch normalisation on the CPU backend: a thread owns some channels.
#include <cmath>

#include "ops/norm/batch.h"
#include "ops/softmax/host_rows.h"

namespace netcl {
namespace {

template <class F>
void for_channels(const BatchPlan& plan, F&& f) {
  const auto grain = std::max<std::int64_t>((1 << 13) / std::max<std::int64_t>(plan.count(), 1), 1);
  parallel_for(plan.channels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto channel = begin; channel < end; ++channel) f(channel);
  });
}

// f(first element) for the runs of `span` neighbours of a channel.
template <class F>
void for_runs(const BatchPlan& plan, std::int64_t channel, F&& f) {
  for (std::int64_t o = 0; o < plan.outer; ++o) f((o * plan.channels + channel) * plan.span);
}

template <class V, class F>
V channel_sum(const BatchPlan& plan, std::int64_t channel, F&& f) {
  V total = 0;
  for_runs(plan, channel, [&](std::int64_t first) {
    total += sum_over<V>(plan.span, [&](std::int64_t i) { return f(first + i); });
  });
  return total;
}

template <class V, class T>
V at(const T* values, std::int64_t i) {
  return static_cast<V>(values[i]);
}

}  // namespace

void host_batch_train(const OpCall& call) {
  const auto plan = plan_batch(call.inputs[0].shape());
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    const T *x = input_data<T>(call, 0), *scale = input_data<T>(call, 1),
            *shift = input_data<T>(call, 2);
    T* y = output_data<T>(call, 0);
    const auto n = static_cast<V>(plan.count());
    const auto eps = static_cast<V>(call.attributes.number("eps"));
    for_channels(plan, [&](std::int64_t c) {
      const V mean = channel_sum<V>(plan, c, [&](std::int64_t i) { return at<V>(x, i); }) / n;
      const V squares = channel_sum<V>(
          plan, c, [&](std::int64_t i) { return (at<V>(x, i) - mean) * (at<V>(x, i) - mean); });
      const V inverse = V(1) / std::sqrt(squares / n + eps);
      for_runs(plan, c, [&](std::int64_t first) {
        for (auto i = first; i < first + plan.span; ++i)
          y[i] = convert_element<T>((at<V>(x, i) - mean) * inverse * at<V>(scale, c) +
                                    at<V>(shift, c));
      });
      output_data<V>(call, 1)[c] = mean;
      output_data<V>(call, 2)[c] = inverse;
    });
  });
}

void host_batch_backward(const OpCall& call) {
  const auto plan = plan_batch(call.inputs[0].shape());
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    const T *x = input_data<T>(call, 0), *scale = input_data<T>(call, 1),
            *dy = input_data<T>(call, 4);
    T* dx = output_data<T>(call, 0);
    const auto n = static_cast<V>(plan.count());
    for_channels(plan, [&](std::int64_t c) {
      const V mean = input_data<V>(call, 2)[c], inverse = input_data<V>(call, 3)[c];
      const auto normal = [&](std::int64_t i) { return (at<V>(x, i) - mean) * inverse; };
      const V total = channel_sum<V>(plan, c, [&](std::int64_t i) { return at<V>(dy, i); });
      const V along =
          channel_sum<V>(plan, c, [&](std::int64_t i) { return at<V>(dy, i) * normal(i); });
      for_runs(plan, c, [&](std::int64_t first) {
        for (auto i = first; i < first + plan.span; ++i)
          dx[i] = convert_element<T>(at<V>(scale, c) * inverse *
                                     (at<V>(dy, i) - total / n - normal(i) * (along / n)));
      });
      output_data<T>(call, 1)[c] = convert_element<T>(along);
      output_data<T>(call, 2)[c] = convert_element<T>(total);
    });
  });
}

void host_batch_inference(const OpCall& call) {
  const auto plan = plan_batch(call.inputs[0].shape());
  const bool relu = call.attributes.flag("fuse_relu");
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    const T *x = input_data<T>(call, 0), *scale = input_data<T>(call, 1),
            *shift = input_data<T>(call, 2);
    T* y = output_data<T>(call, 0);
    const auto eps = static_cast<V>(call.attributes.number("eps"));
    for_channels(plan, [&](std::int64_t c) {
      const V mean = input_data<V>(call, 3)[c];
      const V slope = at<V>(scale, c) / std::sqrt(input_data<V>(call, 4)[c] + eps);
      for_runs(plan, c, [&](std::int64_t first) {
        for (auto i = first; i < first + plan.span; ++i) {
          const V v = (at<V>(x, i) - mean) * slope + at<V>(shift, c);
          y[i] = convert_element<T>(relu && v <= 0 ? V(0) : v);
        }
      });
    });
  });
}

}  // namespace netcl
