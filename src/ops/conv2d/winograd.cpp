// conv2d.winograd_3x3: four launches per part of the batch, a part being what one buffer can hold.
#include "base/format.h"
#include "ops/conv2d/gemm.h"
#include "ops/weight_forms.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/winograd.cl";
constexpr const char* kProduct = "ops/conv2d/winograd_product.cl";

struct alignas(32) Long4 {
  std::int64_t values[4];
};

struct Winograd {
  const OpCall& call;
  ConvSizes s;
  Epilogue epilogue;
  GemmTiles tiles;

  std::int64_t down() const { return static_cast<std::int64_t>(ceil_div(s.P, 2)); }
  std::int64_t across() const { return static_cast<std::int64_t>(ceil_div(s.Q, 2)); }
  DType work_dtype() const { return compute_dtype(call.dtype()); }

  KernelPtr transform(const char* name) const {
    return op_kernel(call.queue, {kPath, name, {bit(call.dtype()), epilogue.bits()}},
                     [&] { return t_and_acc(call.dtype()) + epilogue.defines(); });
  }
  // Not of the dtype and the epilogue: it is slow to compile.
  KernelPtr product() const {
    return op_kernel(call.queue, {kProduct, "winograd_products", {bit(work_dtype()), tiles.bits()}},
                     [&] { return t_and_acc(work_dtype()) + tiles.defines(); });
  }
  Tensor workspace(std::int64_t rows, std::int64_t columns) const {
    return Tensor::empty(call.queue, {16, rows, columns}, work_dtype());
  }
  void run_part(const Tensor& u, std::int64_t first, std::int64_t images) const;
};

Tensors transformed_filters(const Tensor& w) {
  const auto count = w.size(0) * w.size(1);
  const auto u = Tensor::empty(w.queue(), {16, w.size(0), w.size(1)}, compute_dtype(w.dtype()));
  const auto kernel = op_kernel(w.queue(), {kPath, "winograd_filters", {bit(w.dtype())}},
                                [&] { return t_and_acc(w.dtype()) + Epilogue().defines(); });
  enqueue_items(w.queue(), kernel, OpArgs().tensor(w).tensor(u).value(count), count);
  return {u};
}

void Winograd::run_part(const Tensor& u, std::int64_t first, std::int64_t images) const {
  const auto geometry = s.geometry();
  const auto columns = images * down() * across();
  const Long4 shape{{columns, down(), across(), 0}};
  const auto v = workspace(s.C, columns), m = workspace(s.K, columns);
  enqueue_items(call.queue, transform("winograd_inputs"),
                OpArgs()
                    .tensor(call.inputs[0])
                    .tensor(v)
                    .by_value(&geometry, sizeof geometry)
                    .by_value(&shape, sizeof shape)
                    .value(first),
                s.C * columns);
  OpArgs()
      .tensor(u)
      .tensor(v)
      .tensor(m)
      .by_value(&geometry, sizeof geometry)
      .value(columns)
      .enqueue(call.queue, product(), tiles.global(s.group_filters(), columns, 16 * s.groups),
               tiles.local());
  OpArgs outputs;
  outputs.tensor(m).tensor(epilogue.bias_or(call.inputs[1]));
  enqueue_items(call.queue, transform("winograd_outputs"),
                epilogue.add_results(outputs, call.outputs[0])
                    .by_value(&geometry, sizeof geometry)
                    .by_value(&shape, sizeof shape)
                    .value(first)
                    .value(epilogue.has_bias()),
                s.K * columns);
}

// How many images of a batch the largest buffer holds.
std::int64_t images_per_part(const ConvSizes& s, DType dtype,
                             const ExtendedDeviceProfile& profile) {
  const auto tiles = static_cast<std::int64_t>(ceil_div(s.P, 2) * ceil_div(s.Q, 2));
  const auto bytes =
      16 * tiles * std::max(s.C, s.K) * static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  return static_cast<std::int64_t>(profile.max_mem_alloc_size) / std::max<std::int64_t>(bytes, 1);
}

void run(const OpCall& call, const VariantRun& with) {
  const Winograd job{call, sizes_of_forward(call), epilogue_of(call), GemmTiles(with)};
  const auto u = form_of({"winograd_filters",
                          {},
                          [](const Tensors& sources) { return transformed_filters(sources[0]); }},
                         {call.inputs[1]});
  const auto part = images_per_part(job.s, call.dtype(), device_profile(call.queue));
  for (std::int64_t first = 0; first < job.s.N; first += part)
    job.run_part(u, first, std::min(part, job.s.N - first));
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  const auto s = sizes_of_forward(call);
  if (s.R != 3 || s.S != 3) return fmt::format("the filter is {}x{}, not 3x3", s.R, s.S);
  if (s.is_strided()) return fmt::format("stride ({}, {}), not 1", s.stride_h, s.stride_w);
  if (s.is_dilated()) return "the filter is dilated";
  if (images_per_part(s, call.dtype(), profile) < 1)
    return "the workspace of one image passes the device's largest buffer";
  return nothing_to_sum(s);
}

VariantSpace space(const OpCall& call, const ExtendedDeviceProfile& profile,
                   const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  const auto tiles = static_cast<std::int64_t>(ceil_div(s.P, 2) * ceil_div(s.Q, 2));
  return gemm_space(profile, config, call.dtype(), s.group_filters(), s.N * tiles,
                    s.group_channels());
}

}  // namespace

OpVariant winograd_variant() {
  return {"conv2d.winograd_3x3", "CONV2D_WINOGRAD", kPath, declines, run, space};
}

}  // namespace netcl::conv
