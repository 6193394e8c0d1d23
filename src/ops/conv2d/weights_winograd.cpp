// How weights_winograd.cl is launched: for a part of the images at a time, whose transformed tiles
// stay in the cache that the cores share, tiles and product; then the transform of the sums.
#include "base/env.h"
#include "ops/conv2d/weights_tiles.h"
#include "ops/conv2d/winograd_tiles.h"
#include "ops/matmul/plan.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/weights_winograd.cl";
constexpr std::int64_t kFewChannels = 24;  // of both, as their mean: too few for the transforms
constexpr std::int64_t kFewProducts = 1 << 23;  // of the direct method: not worth the launches
constexpr std::int64_t kWidestVector = 16;      // of channels, which the sums are transformed in
constexpr std::int64_t kSmallCache = 4 << 20;   // bytes, where the device tells of none

ConvSizes sizes_of(const OpCall& call) {
  return weights_sizes("conv2d_backward_weights", call.inputs[0].shape(), call.inputs[1].shape(),
                       call.attributes);
}

// Images whose tiles are transformed at a time. Each part reads and writes all sums once more, so
// that its tiles are at least as many bytes.
std::int64_t images_of_part(const ConvSizes& s, const ExtendedDeviceProfile& profile, DType acc) {
  const auto size = static_cast<std::int64_t>(size_of(acc));
  const auto image = tiles_of(s).all / s.N * (s.C + s.K) * kPlaces * size;
  const auto sums = s.C * s.K * kPlaces * size;
  const auto cache = static_cast<std::int64_t>(profile.global_mem_cache_size) / 4;
  const auto images =
      std::clamp<std::int64_t>(std::max({cache, sums, kSmallCache}) / image, 1, s.N);
  const auto parts = static_cast<std::int64_t>(ceil_div(s.N, images));
  return static_cast<std::int64_t>(ceil_div(s.N, parts));
}

KernelPtr kernel_of(const OpCall& call, const char* name, const PanelTile& tile) {
  return op_kernel(call.queue, {kPath, name, {bit(call.dtype()), tile.vec}},
                   [&] { return t_and_acc(call.dtype()) + vector_macros(call.dtype(), tile.vec); });
}

// The sums of some images on top of those of the images before, if there were any.
Tensor add_images(const OpCall& call, ConvSizes s, std::int64_t first, const Tensor& before,
                  const PanelTile& tile) {
  const auto acc = compute_dtype(call.dtype());
  auto tiles = tiles_of(s);
  tiles.argument = tile_pitch(tiles.all, tile.vec);
  const auto matrices = [&](std::int64_t rows) {
    return Tensor::empty(call.queue, {kPlaces, odd(rows), tiles.argument}, acc);
  };
  const auto used = [&](const Tensor& all, std::int64_t rows) {
    return all.narrow(1, 0, rows).narrow(2, 0, tiles.all);
  };
  const auto v = matrices(s.C), u = matrices(s.K);
  struct alignas(16) {
    std::int64_t inputs, gradients;
  } const steps{odd(s.C) * tiles.argument, odd(s.K) * tiles.argument};
  const auto geometry = s.geometry();
  OpArgs()
      .tensor(call.inputs[0].narrow(0, first, s.N))
      .tensor(call.inputs[1].narrow(0, first, s.N))
      .tensor(v)
      .tensor(u)
      .by_value(&geometry, sizeof geometry)
      .by_value(&tiles, sizeof tiles)
      .by_value(&steps, sizeof steps)
      .enqueue(call.queue, kernel_of(call, "weights_winograd_tiles", tile), s.C + s.K, 1);
  const auto m = Tensor::empty(call.queue, {kPlaces, s.K, s.C}, acc);
  auto plan = plan_matmul(used(u, s.K), used(v, s.C).transpose(1, 2), m);
  plan.residual = before;
  packed_product(call.queue, plan, tile);
  return m;
}

void run(const OpCall& call, const VariantRun& with) {
  const auto s = sizes_of(call);
  const PanelTile tile(with);
  const auto part = images_of_part(s, device_profile(call.queue), compute_dtype(call.dtype()));
  Tensor sums;
  for (std::int64_t first = 0; first < s.N; first += part) {
    auto some = s;
    some.N = std::min(part, s.N - first);
    sums = add_images(call, some, first, sums, tile);
  }
  OpArgs()
      .tensor(sums)
      .tensor(call.outputs[0])
      .value(s.K)
      .value(s.C)
      .enqueue(call.queue, kernel_of(call, "weights_winograd_sums", tile), s.K, 1);
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "not a CPU: a work-item would transform all tiles of a channel";
  if (!env::flag("NETCL_CONV_WINOGRAD")) return "NETCL_CONV_WINOGRAD=0";
  const auto s = sizes_of(call);
  if (auto why = not_winograd(s); !why.empty()) return why;
  if (s.N * s.pixels() == 0) return "dy is empty";
  // A tile has C + K transforms for C * K products.
  if (2 * s.C * s.K < kFewChannels * (s.C + s.K) || s.C < kWidestVector)
    return fmt::format("{} channels and {} filters do not pay for the transforms", s.C, s.K);
  const auto tiles = tiles_of(s);
  if (tiles.down * tiles.across * kTile * kTile > 2 * s.pixels())
    return fmt::format("dy of {}x{} fills less than half of its tiles", s.P, s.Q);
  const auto products = s.N * s.pixels() * s.K * s.taps();
  return products < kFewProducts ? fmt::format("{} products are done soon", products)
                                 : std::string();
}

VariantSpace space(const OpCall& call, const ExtendedDeviceProfile&, const KernelConfig& config) {
  const auto s = sizes_of(call);
  return panel_space(config, call.dtype(), s.C,
                     {static_cast<std::size_t>(s.K), static_cast<std::size_t>(s.C),
                      static_cast<std::size_t>(tiles_of(s).all)});
}

}  // namespace

OpVariant weights_winograd_variant() {
  return {
      "conv2d_backward_weights.winograd", "CONV2D_WINOGRAD_PANELS", kPath, declines, run, space};
}

}  // namespace netcl::conv
