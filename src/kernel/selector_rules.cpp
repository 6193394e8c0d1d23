// The rules as one table. A condition answers with the reason why its rule does not hold, which
// NETCL_DEBUG=2 prints; the table's texts are those of docs/kernel-selection.md.
#include "kernel/selector_rules.h"

#include "base/env.h"
#include "base/format.h"
#include "device/strategy.h"
#include "device/vector_unit.h"
#include "kernel/selector_config.h"
#include "kernel/selector_problem.h"

namespace netcl::detail {
namespace {

using Why = std::string;
using Input = const RuleInput&;
using V = KernelVariant;
using F = GPUFamily;

constexpr double kTinyOperations = 1e5, kSmallOperations = 1e7;
constexpr double kTinyOnCpu = 4096;  // where even a partly filled vector is worth its launch
constexpr std::int64_t kTinyOutput = 256, kSmallMap = 256;
constexpr std::int64_t kVectorElements = 1024;
constexpr std::int64_t kSequentialElements = 256, kParallelElements = 65536;
constexpr std::int64_t kManyResults = 256, kShortRow = 64;
constexpr std::int64_t kWideInner = 32, kManyRows = 4096;  // of rows side by side
constexpr std::int64_t kThinGroup = 8, kWinogradChannels = 8, kFewTiles = 16;
constexpr std::size_t kUsefulGroup = 32;

constexpr const char* kHolds = "";

Why always(Input) { return kHolds; }

// ---- about the device

Why not_cpu(Input in) { return in.profile.is_cpu ? kHolds : "the device is no CPU"; }

Why no_real_local_memory(Input in) {
  if (in.profile.use_local_memory) return kHolds;
  return fmt::format("no local memory worth using: {} bytes, {}", in.profile.local_mem_size,
                     in.profile.local_mem_is_real ? "on chip" : "in ordinary memory");
}

// Register blocking and Winograd gain much on devices they suit and lose much on others.
Why not_optimized(Input in) {
  if (in.settings.strategy == "portable") return "NETCL_KERNEL_STRATEGY=portable";
  if (in.profile.gpu_family == F::unknown &&
      decide_strategy(in.settings.strategy, in.profile) == "portable")
    return "nothing is known that speaks for it on this device (NETCL_KERNEL_STRATEGY=optimized "
           "takes it all the same)";
  return kHolds;
}

bool is_intel(GPUFamily family) { return family >= F::intel_gen && family <= F::intel_other; }

Why family_outside(Input in, GPUFamily first, GPUFamily last) {
  const auto family = in.profile.gpu_family;
  if (family >= first && family <= last) return kHolds;
  return fmt::format("the device is of family {}", name_of(family));
}

Why tile_does_not_fit(Input in, int tile, int tile_k) {
  const auto bytes = tile_bytes(tile, tile, tile_k, in.problem.dtype);
  if (static_cast<std::uint64_t>(bytes) <= in.profile.local_mem_size) return kHolds;
  return fmt::format("its tiles need {} bytes of local memory and there are {}", bytes,
                     in.profile.local_mem_size);
}

// The first reason of several conditions.
template <class... Whys>
Why first_of(Whys... whys) {
  Why result;
  ((result.empty() ? void(result = std::move(whys)) : void()), ...);
  return result;
}

Why vectors_not_allowed(Input in) {
  if (in.problem.integer("allow_vectorized", 1) == 0) return "allow_vectorized is false";
  return in.profile.use_vectorization ? kHolds : "the profile has use_vectorization false";
}

// ---- matmul

template <class Condition>
Why matmul_why(Input in, Condition condition) {
  const auto sizes = matmul_sizes(in.problem);
  return sizes ? Why(condition(*sizes)) : Why("the shapes of both factors are not given");
}

double tiny_operations(Input in) { return in.profile.is_cpu ? kTinyOnCpu : kTinyOperations; }

Why matmul_vector(Input in) {
  return matmul_why(in, [&](const MatmulSizes& s) -> Why {
    if (s.M != 1 && s.N != 1) return fmt::format("a {}x{} result is no vector", s.M, s.N);
    if (s.operations() >= tiny_operations(in)) return kHolds;
    return fmt::format("only {} operations", s.operations());
  });
}

Why matmul_tiny(Input in) {
  return matmul_why(in, [&](const MatmulSizes& s) -> Why {
    const double results = static_cast<double>(s.M) * static_cast<double>(s.N);
    const bool few = results < kTinyOutput && !in.profile.is_cpu;
    if (few || s.operations() < tiny_operations(in)) return kHolds;
    return fmt::format("{} results of {} operations are not tiny", results, s.operations());
  });
}

Why matmul_small(Input in) {
  return first_of(no_real_local_memory(in), tile_does_not_fit(in, 32, 8),
                  matmul_why(in, [](const MatmulSizes& s) -> Why {
                    if (s.operations() < kSmallOperations) return kHolds;
                    return fmt::format("{} operations are not few", s.operations());
                  }));
}

Why matmul_any_tiled(Input in) {
  return first_of(no_real_local_memory(in), tile_does_not_fit(in, 32, 8));
}

Why matmul_register_tiled(Input in) {
  const auto& p = in.profile;
  return first_of(not_optimized(in), no_real_local_memory(in),
                  tile_does_not_fit(in, p.optimal_tile_m, p.optimal_tile_k));
}

Why matmul_nvidia(Input in) {
  return first_of(family_outside(in, F::nvidia_turing, F::nvidia_blackwell), not_optimized(in),
                  no_real_local_memory(in), tile_does_not_fit(in, 64, 16));
}

Why matmul_amd(Input in) {
  return first_of(family_outside(in, F::amd_rdna2, F::amd_rdna4), not_optimized(in),
                  no_real_local_memory(in), tile_does_not_fit(in, 64, 16));
}

Why matmul_vectorized(Input in) {
  return first_of(vectors_not_allowed(in),
                  Why(in.profile.use_local_memory ? "the device has real local memory" : ""),
                  matmul_why(in, [](const MatmulSizes& s) -> Why {
                    if (s.N % 4 == 0) return kHolds;
                    return fmt::format("rows of {} elements are no whole vectors of 4", s.N);
                  }));
}

// ---- conv2d

template <class Condition>
Why conv2d_why(Input in, Condition condition) {
  const auto sizes = conv2d_sizes(in.problem);
  return sizes ? Why(condition(*sizes)) : Why("the shapes of x (NCHW) and w (KCRS) are not given");
}

Why conv2d_depthwise(Input in) {
  return conv2d_why(in, [](const Conv2dSizes& s) -> Why {
    if (s.groups > 1 && s.groups == s.C) return kHolds;
    return fmt::format("{} groups of {} channels", s.groups, s.C);
  });
}

Why conv2d_thin_groups(Input in) {
  return conv2d_why(in, [](const Conv2dSizes& s) -> Why {
    if (s.groups > 1 && s.K / s.groups < kThinGroup) return kHolds;
    return fmt::format("{} filters in {} groups", s.K, s.groups);
  });
}

Why not_floating(Input in) {
  if (is_floating(in.problem.dtype)) return kHolds;
  return fmt::format("{} is no floating type", name_of(in.problem.dtype));
}

Why conv2d_packed(Input in) {
  return first_of(not_cpu(in), not_floating(in), conv2d_why(in, [](const Conv2dSizes& s) -> Why {
                    if (s.is_dilated()) return "the filter is dilated";
                    if (s.stride_h <= 2 && s.stride_w <= 2) return kHolds;
                    return fmt::format("stride ({}, {})", s.stride_h, s.stride_w);
                  }));
}

Why conv2d_im2col(Input in) { return first_of(not_cpu(in), not_floating(in)); }

Why conv2d_pointwise(Input in) {
  return first_of(not_floating(in), conv2d_why(in, [](const Conv2dSizes& s) -> Why {
                    if (!s.is_filter(1, 1)) return fmt::format("the filter is {}x{}", s.R, s.S);
                    if (s.padding_h == 0 && s.padding_w == 0) return kHolds;
                    return "the input is padded";
                  }));
}

Why patch_does_not_fit(Input in) {
  const auto bytes = conv2d_patch_bytes(in);
  if (static_cast<std::uint64_t>(bytes) <= in.profile.local_mem_size / 2) return kHolds;
  return fmt::format("its input patch needs {} bytes and local memory has {}", bytes,
                     in.profile.local_mem_size);
}

Why grouped(Input in) {
  return conv2d_why(in, [](const Conv2dSizes& s) -> Why {
    return s.groups == 1 ? Why() : fmt::format("{} groups", s.groups);
  });
}

Why conv2d_intel_local(Input in) {
  const auto& p = in.profile;
  if (!is_intel(p.gpu_family) || !p.is_integrated) return "the device is no Intel integrated GPU";
  return first_of(grouped(in), no_real_local_memory(in), patch_does_not_fit(in));
}

Why not_winograd_shape(Input in) {
  return conv2d_why(in, [](const Conv2dSizes& s) -> Why {
    if (!s.is_filter(3, 3)) return fmt::format("the filter is {}x{}", s.R, s.S);
    if (!s.has_stride(1)) return fmt::format("stride ({}, {})", s.stride_h, s.stride_w);
    if (s.is_dilated()) return "the filter is dilated";
    if (s.padding_h > 1 || s.padding_w > 1)
      return fmt::format("padding ({}, {})", s.padding_h, s.padding_w);
    if (s.C >= kWinogradChannels && s.K >= kWinogradChannels) return kHolds;
    return fmt::format("{} channels and {} filters do not pay for the transforms", s.C, s.K);
  });
}

Why winograd_too_large(Input in) {
  const auto bytes = winograd_bytes(in);
  if (bytes <= static_cast<double>(in.profile.max_mem_alloc_size)) return kHolds;
  return fmt::format("its workspace of {} bytes passes the device's largest buffer, {}", bytes,
                     in.profile.max_mem_alloc_size);
}

Why conv2d_winograd(Input in) {
  if (!in.settings.winograd) return "NETCL_CONV_WINOGRAD=0";
  if (in.profile.is_cpu) return "the device is a CPU";
  return first_of(not_optimized(in), not_floating(in), grouped(in), not_winograd_shape(in),
                  winograd_too_large(in));
}

// Tiles of 2x2 results in full vectors, with 16 products for each in the place of nine for each
// pixel; the filters to be read become larger than they are, too.
bool small_tiles_pay(const Conv2dSizes& s, const ExtendedDeviceProfile& profile) {
  const auto lanes = detail::vector_unit_floats(profile);
  const auto vectors = [&](std::int64_t count) { return (count + lanes - 1) / lanes; };
  const auto tiles = s.N * ((s.out_h() + 1) / 2) * ((s.out_w() + 1) / 2);
  return 16 * vectors(tiles) * 4 <= 9 * vectors(s.N * s.out_h() * s.out_w()) * 3;
}

Why too_few_tiles(Input in) {
  return conv2d_why(in, [&in](const Conv2dSizes& s) -> Why {
    if (small_tiles_pay(s, in.profile)) return kHolds;
    const auto whole = [](std::int64_t size) { return (size + 3) / 4 * 4; };
    const auto pixels = whole(s.out_h()) * whole(s.out_w());
    if (pixels > 2 * s.out_h() * s.out_w())
      return fmt::format("an output of {}x{} fills less than half of its tiles", s.out_h(),
                         s.out_w());
    // Transformed filters are four times as large, and are made and read for few results.
    const auto tiles = s.N * pixels / 16;
    return tiles >= kFewTiles ? kHolds : fmt::format("{} tiles", tiles);
  });
}

Why conv2d_winograd_panels(Input in) {
  if (!in.settings.winograd) return "NETCL_CONV_WINOGRAD=0";
  return first_of(not_cpu(in), not_floating(in), grouped(in), not_winograd_shape(in),
                  too_few_tiles(in));
}

Why conv2d_small_local(Input in) {
  if (!in.settings.tiled_local) return "NETCL_CONV_TILED_LOCAL is not 1";
  return first_of(grouped(in), no_real_local_memory(in), patch_does_not_fit(in),
                  conv2d_why(in, [](const Conv2dSizes& s) -> Why {
                    if (s.out_h() * s.out_w() < kSmallMap) return kHolds;
                    return fmt::format("an output of {}x{} is not small", s.out_h(), s.out_w());
                  }));
}

// ---- the others

Why elementwise_vectorized(Input in) {
  const auto n = elements(in.problem);
  if (n < kVectorElements) return fmt::format("only {} elements", n);
  return vectors_not_allowed(in);
}

Why reduction_sequential(Input in) {
  const auto n = elements(in.problem);
  return n < kSequentialElements ? kHolds : fmt::format("{} elements", n);
}

Why reduction_chunked(Input in) {
  if (in.profile.is_cpu || in.profile.max_work_group_size < kUsefulGroup) return kHolds;
  return "the device has work-groups that run in step";
}

// Reductions over some of the axes are asked for as (results, elements of each).
std::int64_t reduction_results(Input in) {
  const auto& shapes = in.problem.shapes;
  return !shapes.empty() && shapes[0].rank() == 2 ? shapes[0][0] : 1;
}

Why reduction_short_rows(Input in) {
  const auto results = reduction_results(in);
  if (results < kManyResults) return fmt::format("{} results", results);
  const auto row = in.problem.shapes[0][1];
  return row < kShortRow ? kHolds : fmt::format("{} elements per result", row);
}

Why reduction_parallel(Input in) {
  const auto n = elements(in.problem);
  if (n < kParallelElements || reduction_results(in) >= kManyResults) return kHolds;
  return fmt::format("{} elements", n);
}

Why batchnorm_fused(Input in) {
  if (in.problem.integer("fuse_relu", 0) == 0) return "no ReLU follows";
  return in.problem.integer("training", 1) == 0 ? kHolds : "training needs the statistics first";
}

// Shapes (outer, elements of a row, inner).
Why rowwise_short(Input in) {
  if (in.problem.shapes.empty() || in.problem.shapes[0].rank() != 3)
    return "the shape (outer, elements, inner) is not given";
  const auto n = in.problem.shapes[0][1];
  return n < kShortRow ? kHolds : fmt::format("rows of {} elements", n);
}

Why rowwise_side_by_side(Input in) {
  if (in.problem.shapes.empty() || in.problem.shapes[0].rank() != 3)
    return "the shape (outer, elements, inner) is not given";
  const auto& shape = in.problem.shapes[0];
  if (shape[2] >= kWideInner && shape[0] * shape[2] >= kManyRows) return kHolds;
  return fmt::format("{} rows, {} side by side", shape[0] * shape[2], shape[2]);
}

constexpr BuiltinRule kRules[] = {
    {"matmul", V::MATMUL_GEMV, "one row or one column, from 100,000 operations (CPU: 4,096)",
     "every element of the matrix is used once, so memory decides; a tile would compute 16 or more "
     "rows for one",
     matmul_vector, configure_matmul_gemv},
    {"matmul", V::MATMUL_NAIVE, "fewer than 256 results or 100,000 operations (CPU: 4,096)",
     "the launch costs more than the work", matmul_tiny, configure_matmul_naive},
    {"matmul", V::MATMUL_PACKED, "CPU",
     "a CPU wants packed panels and one work-item per tile; barriers make kernels 10 to 50 times "
     "slower there",
     not_cpu, configure_packed},
    {"matmul", V::MATMUL_TILED, "real local memory, under 10 million operations",
     "small tiles give enough work-groups to fill the device", matmul_small,
     configure_matmul_tiled},
    {"matmul", V::MATMUL_REGISTER_TILED, "NVIDIA, Turing and newer",
     "255 registers per work-item hold 8x8 accumulators: 64x64 tiles by 64 work-items",
     matmul_nvidia, configure_register_tiled_nvidia},
    {"matmul", V::MATMUL_REGISTER_TILED, "AMD, RDNA2 and newer",
     "4x4 accumulators keep enough wavefronts in flight: 64x64 tiles by 256 work-items", matmul_amd,
     configure_register_tiled_amd},
    {"matmul", V::MATMUL_REGISTER_TILED, "other GPUs with real local memory",
     "4x4 accumulators per work-item quarter the traffic of local memory", matmul_register_tiled,
     configure_register_tiled},
    {"matmul", V::MATMUL_TILED, "real local memory, portable strategy",
     "needs nothing but local memory", matmul_any_tiled, configure_matmul_tiled},
    {"matmul", V::MATMUL_VECTORIZED, "no real local memory, rows of whole vectors",
     "4x4 results per work-item from vector loads; the cache does what local memory would",
     matmul_vectorized, configure_matmul_vectorized},
    {"matmul", V::MATMUL_NAIVE, "always", "works everywhere", always, configure_matmul_naive},

    {"conv2d", V::CONV2D_DEPTHWISE, "as many groups as input channels",
     "nothing is summed over channels, so there is no matrix product", conv2d_depthwise,
     configure_per_item},
    {"conv2d", V::CONV2D_NAIVE, "groups with fewer than 8 filters",
     "a matrix product per group would be thinner than a tile", conv2d_thin_groups,
     configure_per_item},
    {"conv2d", V::CONV2D_WINOGRAD_PANELS,
     "CPU, 3x3, stride 1, padding up to 1, from 8 channels and filters",
     "four times fewer multiplications", conv2d_winograd_panels, configure_packed},
    {"conv2d", V::CONV2D_PACKED, "CPU, stride up to 2, not dilated",
     "a matrix product whose right factor is gathered panel by panel, straight from the input",
     conv2d_packed, configure_packed},
    {"conv2d", V::CONV2D_IM2COL, "CPU",
     "the copy turns scattered reads into the packed matrix product", conv2d_im2col,
     configure_packed},
    {"conv2d", V::CONV2D_IMPLICIT_GEMM, "1x1 filter without padding",
     "it is a matrix product as it stands", conv2d_pointwise, configure_conv2d_pointwise},
    {"conv2d", V::CONV2D_TILED_LOCAL, "Intel integrated GPU, the input patch fits",
     "memory is shared with the host: reading the input once beats Winograd's larger workspace",
     conv2d_intel_local, configure_conv2d_tiled_local},
    {"conv2d", V::CONV2D_WINOGRAD, "3x3, stride 1, padding up to 1, from 8 channels and filters",
     "2.25 times fewer multiplications", conv2d_winograd, configure_conv2d_winograd},
    {"conv2d", V::CONV2D_TILED_LOCAL, "output under 256 pixels with NETCL_CONV_TILED_LOCAL=1",
     "asked for by the environment", conv2d_small_local, configure_conv2d_tiled_local},
    {"conv2d", V::CONV2D_IMPLICIT_GEMM, "floating types",
     "a tiled matrix product without the im2col copy", not_floating, configure_nothing},
    {"conv2d", V::CONV2D_NAIVE, "always", "works everywhere", always, configure_per_item},

    {"elementwise", V::ELEMENTWISE_VECTORIZED, "from 1024 elements",
     "wide loads and stores use the whole memory path", elementwise_vectorized,
     configure_elementwise},
    {"elementwise", V::ELEMENTWISE_SCALAR, "always", "works everywhere", always,
     configure_elementwise_scalar},

    {"reduction", V::REDUCTION_SEQUENTIAL, "under 256 elements",
     "the launch costs more than the work", reduction_sequential, configure_reduction_sequential},
    {"reduction", V::REDUCTION_CHUNKED, "CPU, or work-groups under 32",
     "one work-item per chunk needs no barriers", reduction_chunked, configure_reduction_chunked},
    {"reduction", V::REDUCTION_SEQUENTIAL, "from 256 results of under 64 elements each",
     "the results fill the device, and a work-group each would be mostly idle",
     reduction_short_rows, configure_reduction_sequential},
    {"reduction", V::REDUCTION_PARALLEL, "under 65,536 elements, or from 256 results",
     "one work-group per result is enough and saves the second launch", reduction_parallel,
     configure_reduction_parallel},
    {"reduction", V::REDUCTION_WORKGROUP, "more",
     "a partial result per work-group, then one more "
     "stage",
     always, configure_reduction_workgroup},
    {"reduction", V::REDUCTION_SEQUENTIAL, "always", "works everywhere", always,
     configure_reduction_sequential},

    {"batchnorm", V::BATCHNORM_FUSED, "inference with a ReLU behind it",
     "the statistics are constants, so one pass over memory does both", batchnorm_fused,
     configure_per_item},
    {"batchnorm", V::BATCHNORM_NAIVE, "always", "works everywhere", always, configure_nothing},

    {"rowwise", V::ROWWISE_ITEM, "CPU", "a core walks a row alone; barriers would cost more",
     not_cpu, configure_per_item},
    {"rowwise", V::ROWWISE_ITEM, "rows of under 64 elements", "a work-group would be mostly idle",
     rowwise_short, configure_per_item},
    {"rowwise", V::ROWWISE_ITEM, "from 4096 rows, 32 or more side by side in memory",
     "neighbouring items read neighbouring elements, and there are enough of them",
     rowwise_side_by_side, configure_per_item},
    {"rowwise", V::ROWWISE_GROUP, "always", "the items of a group share a long row", always,
     configure_reduction_parallel},
};

constexpr std::string_view kStrategies[] = {"auto", "portable", "optimized"};

}  // namespace

std::span<const BuiltinRule> builtin_rules() { return kRules; }

SelectorSettings SelectorSettings::from_environment() {
  return {asked_strategy(), env::flag("NETCL_CONV_WINOGRAD"), env::flag("NETCL_CONV_TILED_LOCAL")};
}

std::uint64_t SelectorSettings::packed() const {
  std::uint64_t index = 0;
  while (kStrategies[index] != strategy) ++index;
  return index << 2 | (winograd ? 2u : 0u) | (tiled_local ? 1u : 0u);
}

SelectorSettings SelectorSettings::unpacked(std::uint64_t bits) {
  return {kStrategies[bits >> 2], (bits & 2) != 0, (bits & 1) != 0};
}

KernelConfig make_config(const BuiltinRule& rule, const RuleInput& input) {
  auto config = starting_config(rule.variant, input.profile);
  rule.configure(input, config);
  return config;
}

KernelConfig make_named_config(std::string_view kernel, const RuleInput& input) {
  const BuiltinRule* named = nullptr;
  for (const auto& rule : kRules) {
    if (name_of(rule.variant) != kernel) continue;
    named = &rule;
    if (rule.why_not(input).empty()) break;
  }
  if (named != nullptr) return make_config(*named, input);
  auto config = starting_config(KernelVariant::CUSTOM, input.profile);
  config.extra["kernel"] = std::string(kernel);
  return config;
}

}  // namespace netcl::detail
