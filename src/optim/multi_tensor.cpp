#include "optim/multi_tensor.h"

#include <cmath>
#include <span>

#include "base/check.h"
#include "base/parallel.h"
#include "ops/kernels.h"
#include "tensor/access.h"
#include "tensor/convert.h"
#include "tensor/following.h"

namespace netcl::optim {
namespace {

constexpr std::size_t kPerLaunch = 8;
constexpr std::int64_t kGrain = 1 << 14;

// ---- CPU backend: the formulas of multi_tensor.cl once more

template <class A>
A updated(UpdateRule rule, const std::array<A, 8>& k, A x, A d, A* a, A* b) {
  switch (rule) {
    case UpdateRule::sgd: {
      d += k[3] * x;
      if (k[1] == 0) return x - k[0] * d;
      const A v = k[5] != 0 ? d : k[1] * *a + (1 - k[2]) * d;
      *a = v;
      return x - k[0] * (k[4] != 0 ? d + k[1] * v : v);
    }
    case UpdateRule::adam: {
      if (k[5] != 0)
        x -= k[0] * k[4] * x;
      else
        d += k[4] * x;
      *a = k[1] * *a + (1 - k[1]) * d;
      *b = k[2] * *b + (1 - k[2]) * d * d;
      return x - k[0] * (*a / k[6]) / (std::sqrt(*b / k[7]) + k[3]);
    }
    case UpdateRule::rms_prop: {
      d += k[3] * x;
      *a = k[1] * *a + (1 - k[1]) * d * d;
      d = d / (std::sqrt(*a) + k[2]);
      if (k[4] != 0) *b = d = d + k[4] * *b;
      return x - k[0] * d;
    }
    case UpdateRule::average:
      return x + k[0] * (d - x);
  }
  return x;
}

template <class T, class A>
void update_on_host(UpdateRule rule, const std::array<double, 8>& numbers, const Update& update) {
  std::array<A, 8> k;
  for (std::size_t i = 0; i < 8; ++i) k[i] = static_cast<A>(numbers[i]);
  auto* p = static_cast<T*>(update.target.host_data());
  const auto* g = static_cast<const T*>(update.gradient.host_data());
  A unused = 0;
  auto* a = update.first ? static_cast<A*>(update.first.host_data()) : nullptr;
  auto* b = update.second ? static_cast<A*>(update.second.host_data()) : nullptr;
  parallel_for(update.target.numel(), kGrain,
               [&, unused](std::int64_t begin, std::int64_t end) mutable {
                 for (auto i = begin; i < end; ++i)
                   p[i] = convert_element<T>(updated<A>(rule, k, convert_element<A>(p[i]),
                                                        convert_element<A>(g[i]),
                                                        a ? a + i : &unused, b ? b + i : &unused));
               });
}

void update_on_host(UpdateRule rule, const std::array<double, 8>& numbers, const Update& update) {
  switch (update.target.dtype()) {
    case DType::float64:
      return update_on_host<double, double>(rule, numbers, update);
    case DType::float16:
      return update_on_host<float16_t, float>(rule, numbers, update);
    default:
      return update_on_host<float, float>(rule, numbers, update);
  }
}

// ---- OpenCL

void launch(UpdateRule rule, const std::array<double, 8>& numbers, std::span<const Update> updates,
            const Tensor& stored) {
  const auto& queue = updates[0].target.queue();
  const auto dtype = updates[0].target.dtype();
  const bool cpu = device_profile(queue).is_cpu;
  const std::int64_t chunk = cpu ? 16384 : 2048;
  const auto kernel = op_kernel(
      queue,
      KernelKey("optim/multi_tensor.cl", "multi_tensor",
                {static_cast<std::int64_t>(dtype), static_cast<std::int64_t>(rule), chunk,
                 stored ? 1 : 0}),
      [&] {
        return t_and_acc(dtype) + define("ACC8", fmt::format("{}8", compute_type(dtype))) +
               define("CHUNK", chunk) + define("RULE", static_cast<std::int64_t>(rule)) +
               define("STORED", stored ? 1 : 0);
      });
  std::vector<KernelArg> args;
  const auto last = updates.size() - 1;
  // What is missing of the eight stands for the last one, which owns no group beyond its own.
  const auto push = [&](const auto& tensor_of) {
    for (std::size_t k = 0; k < kPerLaunch; ++k)
      args.emplace_back(TensorAccess::buffer(tensor_of(updates[std::min(k, last)])));
  };
  push([](const Update& u) -> const Tensor& { return u.target; });
  push([](const Update& u) -> const Tensor& { return u.gradient; });
  push([](const Update& u) -> const Tensor& { return u.first ? u.first : u.target; });
  push([](const Update& u) -> const Tensor& { return u.second ? u.second : u.target; });
  Long8 at_p, at_g, sizes, ends;
  std::int64_t groups = 0;
  for (std::size_t k = 0; k < kPerLaunch; ++k) {
    const auto& update = updates[std::min(k, last)];
    at_p.values[k] = update.target.offset();
    at_g.values[k] = update.gradient.offset();
    sizes.values[k] = update.target.numel();
    if (k <= last) groups += static_cast<std::int64_t>(ceil_div(update.target.numel(), chunk));
    ends.values[k] = groups;
  }
  for (const auto* packed : {&at_p, &at_g, &sizes, &ends})
    args.push_back(KernelArg::by_value(packed->values.data(), sizeof packed->values));
  alignas(64) std::array<float, 8> singles;
  alignas(64) std::array<double, 8> doubles = numbers;
  for (std::size_t i = 0; i < 8; ++i) singles[i] = static_cast<float>(numbers[i]);
  if (stored)
    args.emplace_back(TensorAccess::buffer(stored));
  else
    args.push_back(dtype == DType::float64 ? KernelArg::by_value(doubles.data(), sizeof doubles)
                                           : KernelArg::by_value(singles.data(), sizeof singles));
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, cpu ? 1 : 128));
  enqueue_kernel(queue, *kernel, WorkSize(groups * local), WorkSize(local), args);
}

}  // namespace

DType accumulator_dtype(DType dtype) {
  return dtype == DType::float64 ? DType::float64 : DType::float32;
}

void update_tensors(UpdateRule rule, const std::array<double, 8>& numbers,
                    const std::vector<Update>& given, const Tensor& stored) {
  std::vector<Update> updates;
  for (auto update : given) {
    if (update.target.numel() == 0) continue;
    update.gradient = update.gradient.contiguous();
    before_write("update", update.target);
    updates.push_back(std::move(update));
  }
  if (updates.empty()) return;
  const auto& queue = updates[0].target.queue();
  if (queue.is_cpu()) {
    for (const auto& update : updates) update_on_host(rule, numbers, update);
    return;
  }
  check<DeviceError>(updates[0].target.dtype() != DType::float64 || device_profile(queue).has_fp64,
                     "[update] the device has no float64: {}", queue.name());
  for (std::size_t begin = 0; begin < updates.size(); begin += kPerLaunch)
    launch(rule, numbers,
           std::span(updates).subspan(begin, std::min(kPerLaunch, updates.size() - begin)), stored);
}

}  // namespace netcl::optim
