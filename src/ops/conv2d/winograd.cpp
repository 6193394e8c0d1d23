// Winograd's F(2x2, 3x3): the products in tiles of local memory (conv2d.winograd_3x3), four
// launches per part of the batch, a part being what one buffer can hold; or on CPUs, where few
// tiles of 2x2 fill vectors that tiles of 4x4 would not, with strips of filters
// (conv2d.winograd_strips).
#include "base/format.h"
#include "ops/conv2d/gemm.h"
#include "ops/conv2d/winograd_filters.h"
#include "ops/conv2d/winograd_strips.h"
#include "ops/conv2d/winograd_tiles.h"
#include "ops/vector_lanes.h"
#include "ops/weight_forms.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/winograd.cl";
constexpr const char* kProduct = "ops/conv2d/winograd_product.cl";
constexpr const char* kStrips = "ops/conv2d/winograd_strips.cl";

struct alignas(32) Long4 {
  std::int64_t values[4];
};

constexpr std::int64_t kSmallPatch = 4, kSmallPlaces = kSmallPatch * kSmallPatch;

struct Winograd {
  const OpCall& call;
  ConvSizes s;
  Epilogue epilogue;

  std::int64_t down() const { return static_cast<std::int64_t>(ceil_div(s.P, 2)); }
  std::int64_t across() const { return static_cast<std::int64_t>(ceil_div(s.Q, 2)); }
  DType work_dtype() const { return compute_dtype(call.dtype()); }

  KernelPtr transform(const char* name) const {
    return op_kernel(call.queue, {kPath, name, {bit(call.dtype()), epilogue.bits()}},
                     [&] { return t_and_acc(call.dtype()) + epilogue.defines(); });
  }
  Tensor workspace(std::int64_t rows, std::int64_t columns) const {
    return Tensor::empty(call.queue, {kSmallPlaces, rows, columns}, work_dtype());
  }
  // product(v, m) computes m; a row of both has `pitch` elements.
  template <class Product>
  void run_part(std::int64_t first, std::int64_t images, std::int64_t pitch,
                Product&& product) const;
};

Tensors transformed_filters(const Tensor& w) {
  const auto count = w.size(0) * w.size(1);
  const auto u =
      Tensor::empty(w.queue(), {kSmallPlaces, w.size(0), w.size(1)}, compute_dtype(w.dtype()));
  const auto kernel = op_kernel(w.queue(), {kPath, "winograd_filters", {bit(w.dtype())}},
                                [&] { return t_and_acc(w.dtype()) + Epilogue().defines(); });
  enqueue_items(w.queue(), kernel, OpArgs().tensor(w).tensor(u).value(count), count);
  return {u};
}

template <class Product>
void Winograd::run_part(std::int64_t first, std::int64_t images, std::int64_t pitch,
                        Product&& product) const {
  const auto geometry = s.geometry();
  const auto columns = images * down() * across();
  const Long4 shape{{columns, down(), across(), pitch}};
  const auto v = workspace(s.C, pitch), m = workspace(s.K, pitch);
  enqueue_items(call.queue, transform("winograd_inputs"),
                OpArgs()
                    .tensor(call.inputs[0])
                    .tensor(v)
                    .by_value(&geometry, sizeof geometry)
                    .by_value(&shape, sizeof shape)
                    .value(first),
                s.C * pitch);
  product(v, m);
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

// ---- products in local memory

// Not of the op's dtype and epilogue: it is slow to compile.
KernelPtr local_product(const Queue& queue, DType dtype, const GemmTiles& tiles) {
  return op_kernel(queue, {kProduct, "winograd_products", {bit(dtype), tiles.bits()}},
                   [&] { return t_and_acc(dtype) + tiles.defines(); });
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
  const Winograd job{call, sizes_of_forward(call), epilogue_of(call)};
  const GemmTiles tiles(with);
  const auto& s = job.s;
  const auto u = form_of({"winograd_filters",
                          {},
                          [](const Tensors& sources) { return transformed_filters(sources[0]); }},
                         {call.inputs[1]});
  const auto kernel = local_product(call.queue, job.work_dtype(), tiles);
  const auto geometry = s.geometry();
  const auto part = images_per_part(s, call.dtype(), device_profile(call.queue));
  for (std::int64_t first = 0; first < s.N; first += part) {
    const auto images = std::min(part, s.N - first), columns = images * job.down() * job.across();
    job.run_part(first, images, columns, [&](const Tensor& v, const Tensor& m) {
      OpArgs()
          .tensor(u)
          .tensor(v)
          .tensor(m)
          .by_value(&geometry, sizeof geometry)
          .value(columns)
          .enqueue(call.queue, kernel,
                   tiles.global(s.group_filters(), columns, kSmallPlaces * s.groups),
                   tiles.local());
    });
  }
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

// ---- strips

std::int64_t small_tiles(const ConvSizes& s) {
  return s.N * static_cast<std::int64_t>(ceil_div(s.P, 2) * ceil_div(s.Q, 2));
}

void run_strips(const OpCall& call, const VariantRun& with) {
  const Winograd job{call, sizes_of_forward(call), epilogue_of(call)};
  const auto& s = job.s;
  const PanelTile tile(with);
  const auto pitch = tile.width();
  const StripProduct product{kSmallPlaces, s.K, s.C, pitch, s.C * pitch, s.K * pitch};
  const auto u = vector_filters(call, kSmallPatch, tile.vec, true);
  job.run_part(0, s.N, pitch, [&](const Tensor& v, const Tensor& m) {
    product.enqueue(call.queue, u, v, m, tile);
  });
}

std::optional<PanelTile> small_strip_tile(const ConvSizes& s, DType dtype,
                                          const KernelConfig& config) {
  return strip_tile(small_tiles(s), panel_vector(config, dtype), config);
}

// Vectors of all places, which cost as much as products with them.
std::string declines_strips(const OpCall& call, const ExtendedDeviceProfile& profile) {
  const auto s = sizes_of_forward(call);
  const auto why_not = not_winograd(s);
  if (!why_not.empty()) return why_not;
  if (!profile.is_cpu) return "not a CPU: a work-group would be one work-item";
  const auto lanes = unit_lanes(profile, compute_dtype(call.dtype()));
  const auto small = static_cast<std::int64_t>(ceil_div(small_tiles(s), lanes));
  const auto large = static_cast<std::int64_t>(ceil_div(tiles_of(s).all, lanes));
  if (kSmallPlaces * small >= kPlaces * large)
    return fmt::format("{} tiles of 2x2 are more work than {} of 4x4", small_tiles(s),
                       tiles_of(s).all);
  return small > kMostStripVectors
             ? fmt::format("{} tiles do not fit {} vectors", small_tiles(s), kMostStripVectors)
             : std::string();
}

VariantSpace strips_space(const OpCall& call, const ExtendedDeviceProfile&,
                          const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  VariantSpace space;
  if (const auto tile = small_strip_tile(s, call.dtype(), config)) {
    space.tunables = {{"MR", {tile->mr}}, {"NV", {tile->nv}}, {"VEC", {tile->vec}}};
    space.defaults = {{"MR", tile->mr}, {"NV", tile->nv}, {"VEC", tile->vec}};
  }
  space.sizes = {static_cast<std::size_t>(s.K), static_cast<std::size_t>(small_tiles(s)),
                 static_cast<std::size_t>(s.C)};
  return space;
}

}  // namespace

OpVariant winograd_strips_variant() {
  return {"conv2d.winograd_strips",
          "CONV2D_WINOGRAD_PANELS",
          kStrips,
          declines_strips,
          run_strips,
          strips_space};
}

OpVariant winograd_variant() {
  return {"conv2d.winograd_3x3", "CONV2D_WINOGRAD", kPath, declines, run, space};
}

}  // namespace netcl::conv
