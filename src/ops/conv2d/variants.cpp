// The variants of conv2d that need neither a copy of the input nor a transform, and the order of
// all of them.
#include "base/format.h"
#include "ops/conv2d/gemm.h"
#include "ops/conv2d/planes.h"

namespace netcl::conv {
namespace {

constexpr const char* kNaive = "ops/conv2d/naive.cl";
constexpr const char* kDepthwise = "ops/conv2d/depthwise.cl";
constexpr const char* kImplicit = "ops/conv2d/implicit_gemm.cl";

void run_naive(const OpCall& call, const VariantRun&) {
  const auto s = sizes_of_forward(call);
  const auto epilogue = epilogue_of(call);
  const auto kernel =
      op_kernel(call.queue, {kNaive, "conv2d_naive", {bit(call.dtype()), epilogue.bits()}},
                [&] { return t_and_acc(call.dtype()) + epilogue.defines(); });
  const auto geometry = s.geometry();
  const auto count = call.outputs[0].numel();
  enqueue_items(call.queue, kernel, whole_args(call, epilogue, geometry).value(count), count);
}

std::string cannot_sum(const OpCall& call, const ExtendedDeviceProfile&) {
  return nothing_to_sum(sizes_of_forward(call));
}

void run_implicit_gemm(const OpCall& call, const VariantRun& with) {
  const auto s = sizes_of_forward(call);
  const auto epilogue = epilogue_of(call);
  const GemmTiles tiles(with);
  const auto kernel = op_kernel(
      call.queue,
      {kImplicit, "conv2d_implicit_gemm", {bit(call.dtype()), epilogue.bits(), tiles.bits()}},
      [&] { return t_and_acc(call.dtype()) + epilogue.defines() + tiles.defines(); });
  const auto geometry = s.geometry();
  whole_args(call, epilogue, geometry)
      .enqueue(call.queue, kernel, tiles.global(s.group_filters(), s.N * s.pixels(), s.groups),
               tiles.local());
}

std::string not_depthwise(const OpCall& call, const ExtendedDeviceProfile&) {
  const auto s = sizes_of_forward(call);
  if (s.groups == s.C) return nothing_to_sum(s);
  return fmt::format("{} groups of {} channels", s.groups, s.C);
}

void run_depthwise(const OpCall& call, const VariantRun& with) {
  const auto s = sizes_of_forward(call);
  const auto epilogue = epilogue_of(call);
  const auto items = with["ITEMS"];
  const auto kernel = op_kernel(
      call.queue, {kDepthwise, "conv2d_depthwise", {bit(call.dtype()), epilogue.bits(), items}},
      [&] { return t_and_acc(call.dtype()) + epilogue.defines() + define("ITEMS", items); });
  const auto geometry = s.geometry();
  const auto count = s.N * s.K * s.P * static_cast<std::int64_t>(ceil_div(s.Q, items));
  enqueue_items(call.queue, kernel, whole_args(call, epilogue, geometry).value(count), count,
                with["WG"]);
}

VariantSpace depthwise_space(const OpCall& call, const ExtendedDeviceProfile& profile,
                             const KernelConfig&) {
  return {{{"ITEMS", {1, 2, 4, 8, 16}}, {"WG", {16, 64, 256}}},
          {{"ITEMS", profile.is_cpu ? 16 : 2}, {"WG", profile.is_cpu ? 16 : 64}},
          nullptr,
          {static_cast<std::size_t>(call.outputs[0].numel())}};
}

}  // namespace

OpArgs whole_args(const OpCall& call, const Epilogue& epilogue, const ConvGeometry& geometry) {
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.inputs[1]).tensor(epilogue.bias_or(call.inputs[1]));
  epilogue.add_results(args, call.outputs[0]).by_value(&geometry, sizeof geometry);
  args.value(epilogue.has_bias());
  return args;
}

std::string nothing_to_sum(const ConvSizes& s) {
  return s.taps() > 0 ? "" : "there are no channels to sum over";
}

std::vector<OpVariant> forward_variants() {
  OpVariant naive{"conv2d.naive", "CONV2D_NAIVE", kNaive};
  naive.run = run_naive;
  const OpVariant implicit{"conv2d.implicit_gemm", "CONV2D_IMPLICIT_GEMM", kImplicit, cannot_sum,
                           run_implicit_gemm,      forward_gemm_space};
  const OpVariant depthwise{"conv2d.depthwise", "CONV2D_DEPTHWISE", kDepthwise,
                            not_depthwise,      run_depthwise,      depthwise_space};
  return {implicit,
          winograd_variant(),
          winograd_strips_variant(),
          winograd_panels_variant(),
          winograd_batched_variant(),
          tiled_local_variant(),
          taps_variant(),
          packed_variant(),
          im2col_variant(),
          planes_variant(),
          depthwise,
          naive};
}

}  // namespace netcl::conv
