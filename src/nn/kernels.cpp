// The kernels of a module, found by running it once and listening.
#include <deque>

#include "base/check.h"
#include "kernel/launch_listener.h"
#include "netcl/nn.h"
#include "nn/eval_scope.h"

namespace netcl::nn {
namespace {

// What the arguments of a launch point to, for as long as somebody has them.
struct Kept {
  std::deque<Buffer> buffers;
  std::deque<std::vector<char>> values;
  Queue queue;
};

KernelArg kept_argument(const KernelArg& arg, Kept& kept) {
  using Kind = KernelArg::Kind;
  if (arg.kind() == Kind::memory) {
    const auto& buffer = kept.buffers.emplace_back(*arg.buffer());
    if (!arg.dtype()) return KernelArg(buffer);
    return KernelArg::memory(buffer, arg.offset(), arg.size(), *arg.dtype(), kept.queue);
  }
  if (arg.kind() == Kind::bytes) {
    const auto* bytes = static_cast<const char*>(arg.data());
    const auto& value = kept.values.emplace_back(bytes, bytes + arg.size());
    return KernelArg::by_value(value.data(), value.size());
  }
  return arg;
}

class Listener : public LaunchListener {
 public:
  explicit Listener(const Queue& queue) : queue_(queue) {}

  void launched(const detail::KernelState& kernel, const WorkSize& global, const WorkSize& local,
                std::span<const KernelArg> args) override {
    auto kept = std::make_shared<Kept>();
    kept->queue = queue_;
    KernelLaunch launch;
    launch.name = kernel.name;
    launch.global_size = global;
    launch.local_size = local;
    launch.is_free = kernel.limits.local_bytes == 0 && kernel.limits.required_size[0] == 0;
    for (const auto& arg : args) {
      launch.is_free = launch.is_free && arg.kind() != KernelArg::Kind::local;
      launch.arguments.push_back(kept_argument(arg, *kept));
    }
    launch.memory = std::move(kept);
    launch.kernel = Kernel(shared_kernel(queue_.context(), kernel), {.workgroup_size = local});
    launches.push_back(std::move(launch));
  }

  std::vector<KernelLaunch> launches;

 private:
  Queue queue_;
};

}  // namespace

std::vector<KernelLaunch> Module::kernels(const Tensor& x) {
  if (x.queue().is_cpu()) return {};
  const EvalScope asked(*this);
  Listener listener(x.queue());
  {
    const ListeningScope listening(&listener);
    forward(x).wait();
  }
  return std::move(listener.launches);
}

struct Module::Input {
  Shape shape;
  DType dtype;
  Queue queue;
};

void Module::remember_input(const Tensor& x) {
  const auto last = last_input_.load();
  if (last && last->shape == x.shape() && last->dtype == x.dtype() && last->queue == x.queue())
    return;
  last_input_.store(std::make_shared<const Input>(Input{x.shape(), x.dtype(), x.queue()}));
}

Tensor Module::operator()(const Tensor& x) {
  remember_input(x);
  return forward(x);
}

std::vector<KernelLaunch> Module::kernels() {
  const auto last = last_input_.load();
  check<ArgumentError>(last != nullptr,
                       "[kernels] the module must have been called once, or be given an input: {}",
                       describe());
  return kernels(Tensor::from_shape(last->queue, last->shape, last->dtype));
}

}  // namespace netcl::nn
