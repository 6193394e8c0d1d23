// The variants of conv2d that need neither a copy of the input nor a transform, and the order of
// all of them.
#include "base/format.h"
#include "ops/conv2d/launch.h"

namespace netcl::conv {
namespace {

constexpr const char* kNaive = "ops/conv2d/naive.cl";

void run_naive(const OpCall& call, const VariantRun&) {
  const auto s = sizes_of_forward(call);
  const auto epilogue = epilogue_of(call);
  const auto kernel =
      op_kernel(call.queue, {kNaive, "conv2d_naive", {bit(call.dtype()), epilogue.bits()}},
                [&] { return t_and_acc(call.dtype()) + epilogue.defines(); });
  const auto geometry = s.geometry();
  const auto& y = call.outputs[0];
  const auto args = OpArgs()
                        .tensor(call.inputs[0])
                        .tensor(call.inputs[1])
                        .tensor(epilogue.bias_or(call.inputs[1]))
                        .tensor(y)
                        .by_value(&geometry, sizeof geometry)
                        .value(y.numel());
  enqueue_items(call.queue, kernel, args, y.numel());
}

}  // namespace

std::string nothing_to_sum(const ConvSizes& s) {
  return s.taps() > 0 ? "" : "there are no channels to sum over";
}

std::vector<OpVariant> forward_variants() {
  OpVariant naive{"conv2d.naive", "CONV2D_NAIVE", kNaive};
  naive.run = run_naive;
  return {naive};
}

}  // namespace netcl::conv
