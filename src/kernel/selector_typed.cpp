// The select_* methods: the same rules with plain numbers as input. Their memo keys are written
// straight from the numbers, so a remembered decision allocates nothing but its copy.
#include "base/check.h"
#include "kernel/selector_state.h"
#include "netcl/device.h"

namespace netcl {
namespace {

// Takes the place of the op's name in a key; no name is that long.
enum class Typed : std::uint64_t { matmul = ~0ull - 4, conv2d, elementwise, reduction, batchnorm };

template <class... Words>
void add_all(detail::MemoKey& key, Typed op, Words... words) {
  key.add(static_cast<std::uint64_t>(op));
  (key.add(static_cast<std::uint64_t>(words)), ...);
}

}  // namespace

KernelConfig KernelSelector::select_matmul_kernel(std::int64_t M, std::int64_t N, std::int64_t K,
                                                  DType dtype, bool allow_vectorized) const {
  const auto& device = profile();
  auto key = state_->key(device);
  add_all(key, Typed::matmul, M, N, K, dtype, allow_vectorized);
  const auto problem = [&] {
    return KernelProblem{
        "matmul", {Shape{M, K}, Shape{K, N}}, dtype, {{"allow_vectorized", allow_vectorized}}};
  };
  return state_->decide(key, device, problem)->config;
}

KernelConfig KernelSelector::select_conv2d_kernel(
    std::int64_t batch, std::int64_t in_channels, std::int64_t out_channels, std::int64_t height,
    std::int64_t width, std::int64_t kernel_h, std::int64_t kernel_w, std::int64_t stride,
    std::int64_t padding, DType dtype, std::int64_t dilation, std::int64_t groups) const {
  const auto& device = profile();
  auto key = state_->key(device);
  add_all(key, Typed::conv2d, batch, in_channels, out_channels, height, width, kernel_h, kernel_w,
          stride, padding, dtype, dilation, groups);
  const auto problem = [&] {
    check<ArgumentError>(groups >= 1 && in_channels % groups == 0,
                         "[select] groups of conv2d must divide the {} input channels: {}",
                         in_channels, groups);
    const Shape x{batch, in_channels, height, width};
    const Shape w{out_channels, in_channels / groups, kernel_h, kernel_w};
    return KernelProblem{
        "conv2d",
        {x, w},
        dtype,
        {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}}};
  };
  return state_->decide(key, device, problem)->config;
}

KernelConfig KernelSelector::select_elementwise_kernel(std::int64_t n, DType dtype,
                                                       bool allow_vectorized) const {
  const auto& device = profile();
  auto key = state_->key(device);
  add_all(key, Typed::elementwise, n, dtype, allow_vectorized);
  const auto problem = [&] {
    return KernelProblem{
        "elementwise", {Shape{n}}, dtype, {{"allow_vectorized", allow_vectorized}}};
  };
  return state_->decide(key, device, problem)->config;
}

KernelConfig KernelSelector::select_reduction_kernel(std::int64_t n, std::string_view kind) const {
  const auto& device = profile();
  auto key = state_->key(device);
  add_all(key, Typed::reduction, n);
  key.add(kind);
  const auto problem = [&] {
    return KernelProblem{"reduction", {Shape{n}}, DType::float32, {{"kind", std::string(kind)}}};
  };
  return state_->decide(key, device, problem)->config;
}

KernelConfig KernelSelector::select_batchnorm_kernel(std::int64_t batch, std::int64_t channels,
                                                     std::int64_t spatial, bool training,
                                                     bool fuse_relu) const {
  const auto& device = profile();
  auto key = state_->key(device);
  add_all(key, Typed::batchnorm, batch, channels, spatial, training, fuse_relu);
  const auto problem = [&] {
    return KernelProblem{"batchnorm",
                         {Shape{batch, channels, spatial}},
                         DType::float32,
                         {{"training", training}, {"fuse_relu", fuse_relu}}};
  };
  return state_->decide(key, device, problem)->config;
}

KernelConfig select_matmul_config(std::int64_t M, std::int64_t N, std::int64_t K,
                                  std::optional<Device> device) {
  if (!device) return get_kernel_selector().select_matmul_kernel(M, N, K);
  return get_kernel_selector(*device).select_matmul_kernel(M, N, K);
}

KernelConfig select_conv2d_config(std::int64_t batch, std::int64_t in_channels,
                                  std::int64_t out_channels, std::int64_t height,
                                  std::int64_t width, std::int64_t kernel_h, std::int64_t kernel_w,
                                  std::int64_t stride, std::int64_t padding,
                                  std::optional<Device> device) {
  const auto& shared = get_kernel_selector();
  const auto selector = device ? get_kernel_selector(*device) : shared;
  return selector.select_conv2d_kernel(batch, in_channels, out_channels, height, width, kernel_h,
                                       kernel_w, stride, padding);
}

std::string kernel_rules_markdown() {
  std::string table = "| op | kernel | when | because |\n|---|---|---|---|\n";
  for (const auto& rule : detail::builtin_rules())
    table += fmt::format("| {} | `{}` | {} | {} |\n", rule.op, name_of(rule.variant), rule.when,
                         rule.because);
  return table;
}

}  // namespace netcl
