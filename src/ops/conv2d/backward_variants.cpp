// The variants of the gradients.
#include "ops/conv2d/launch.h"

namespace netcl::conv {
namespace {

constexpr const char* kNaive = "ops/conv2d/backward_naive.cl";

ConvSizes sizes_of_data(const OpCall& call) {
  return data_sizes("conv2d_backward_data", call.inputs[0].shape(), call.inputs[1].shape(),
                    call.attributes);
}

ConvSizes sizes_of_weights(const OpCall& call) {
  return weights_sizes("conv2d_backward_weights", call.inputs[0].shape(), call.inputs[1].shape(),
                       call.attributes);
}

void run_data_naive(const OpCall& call, const VariantRun&) {
  const bool has_bias = call.has(2);
  const auto kernel =
      op_kernel(call.queue, {kNaive, "conv2d_backward_data_naive", {bit(call.dtype())}},
                [&] { return t_and_acc(call.dtype()); });
  const auto geometry = sizes_of_data(call).geometry();
  const auto& dx = call.outputs[0];
  const auto args = OpArgs()
                        .tensor(call.inputs[0])
                        .tensor(call.inputs[1])
                        .tensor(call.inputs[has_bias ? 2 : 1])
                        .tensor(dx)
                        .by_value(&geometry, sizeof geometry)
                        .value(std::int32_t{has_bias})
                        .value(dx.numel());
  enqueue_items(call.queue, kernel, args, dx.numel());
}

void run_weights_naive(const OpCall& call, const VariantRun&) {
  const auto kernel =
      op_kernel(call.queue, {kNaive, "conv2d_backward_weights_naive", {bit(call.dtype())}},
                [&] { return t_and_acc(call.dtype()); });
  const auto geometry = sizes_of_weights(call).geometry();
  const auto& dw = call.outputs[0];
  const auto args = OpArgs()
                        .tensor(call.inputs[0])
                        .tensor(call.inputs[1])
                        .tensor(dw)
                        .by_value(&geometry, sizeof geometry)
                        .value(dw.numel());
  enqueue_items(call.queue, kernel, args, dw.numel(), 16);
}

}  // namespace

std::vector<OpVariant> backward_data_variants() {
  OpVariant naive{"conv2d_backward_data.naive", "", kNaive};
  naive.run = run_data_naive;
  return {naive};
}

std::vector<OpVariant> backward_weights_variants() {
  OpVariant naive{"conv2d_backward_weights.naive", "", kNaive};
  naive.run = run_weights_naive;
  return {naive};
}

}  // namespace netcl::conv
