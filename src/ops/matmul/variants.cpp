// The kernels of matrix products: their parameters and launches.
#include "base/format.h"
#include "ops/matmul/plan.h"
#include "ops/memory_hints.h"
#include "ops/panels.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

using Plan = std::function<MatmulPlan(const OpCall&)>;

constexpr const char* kNaive = "ops/matmul/naive.cl";
constexpr const char* kTiled = "ops/matmul/tiled.cl";
constexpr const char* kVectorized = "ops/matmul/vectorized.cl";
constexpr const char* kGemv = "ops/matmul/gemv.cl";
constexpr const char* kPacked = "ops/matmul/packed.cl";
// What it costs to make a panel, in tiles multiplied with it: on the way while the first tile is
// multiplied, or by transposing.
constexpr double kPackRows = 0.4, kPackColumns = 1.8, kPackLeft = 0.5;
constexpr double kPackFar = 1;  // more, where the right factor does not stay in a core's cache
constexpr std::int64_t kManyTerms = 384, kFarApart = 8192;  // bytes
// Results that a CPU's work-item sums side by side: long runs of every row, where that leaves
// enough work-items.
constexpr std::int64_t kWideStrip = 128, kStrip = 64, kStripsPerCore = 4;
// Results of a work-item that reads a matrix which the caches do not hold.
constexpr std::int64_t kBlocksPerCore = 2, kNarrowestBlock = 512, kWidestBlock = 4096;
constexpr std::int64_t kGroupsPerCore = 16;
constexpr std::int64_t kMostSums = 8;  // vectors of them that surely stay in registers

std::int64_t code_of(const MatmulPlan& plan) {
  return static_cast<std::int64_t>(plan.dtype()) * 32 + plan.activation * 4 +
         (plan.residual ? 2 : 0) + (plan.bias ? 1 : 0);
}

std::string base_prologue(const MatmulPlan& plan) {
  return t_and_acc(plan.dtype()) + define("HAS_BIAS", plan.bias ? 1 : 0) +
         define("ACTIVATION", plan.activation) +
         (plan.residual ? define("HAS_RESIDUAL", 1) : std::string());
}

// The tensors that every kernel writes or adds. An absent bias is any memory; without a residual
// the kernel has no such parameter.
OpArgs& add_results(OpArgs& args, const MatmulPlan& plan, const Tensor& residual) {
  args.tensor(plan.y.tensor).tensor(plan.bias ? plan.bias : plan.y.tensor);
  return residual ? args.tensor(residual) : args;
}

// The launch of a kernel with the signature of common.cl.
void enqueue(const OpCall& call, const KernelPtr& kernel, const MatmulPlan& plan, const Tensor& a,
             const Tensor& b, const Long8& sizes, const Long8& factors, const WorkSize& global,
             const WorkSize& local) {
  const auto result = plan.result_strides();
  const auto residual = plan.dense_residual();
  OpArgs args;
  add_results(args.tensor(a).tensor(b), plan, residual)
      .by_value(sizes.values.data(), sizeof sizes.values)
      .by_value(factors.values.data(), sizeof factors.values)
      .by_value(result.values.data(), sizeof result.values / 2)
      .enqueue(call.queue, kernel, global, local);
}

void enqueue(const OpCall& call, const KernelPtr& kernel, const MatmulPlan& plan,
             const WorkSize& global, const WorkSize& local) {
  enqueue(call, kernel, plan, plan.a.tensor, plan.b.tensor, plan.sizes(), plan.factor_strides(),
          global, local);
}

std::vector<std::size_t> problem_sizes(const MatmulPlan& plan) {
  return {static_cast<std::size_t>(plan.M), static_cast<std::size_t>(plan.N),
          static_cast<std::size_t>(plan.K), static_cast<std::size_t>(plan.batches())};
}

// ---- naive

void run_naive(const OpCall& call, const MatmulPlan& plan) {
  const auto kernel = op_kernel(call.queue, KernelKey(kNaive, "matmul_naive", {code_of(plan)}),
                                [&] { return base_prologue(plan); });
  const auto wide = static_cast<std::int64_t>(clamped_local(kernel, 64));
  enqueue(call, kernel, plan,
          {static_cast<std::int64_t>(rounded_up(plan.N, wide)), plan.M, plan.batches()},
          {wide, 1, 1});
}

// ---- tiles in local memory

std::string too_large(const Parameters& p, const ExtendedDeviceProfile& profile, DType dtype) {
  const auto group = (p.at("TILE_M") / p.at("WORK")) * (p.at("TILE_N") / p.at("WORK"));
  if (p.at("TILE_M") % p.at("WORK") != 0 || p.at("TILE_N") % p.at("WORK") != 0)
    return "the work per item must divide the tile";
  if (static_cast<std::size_t>(group) > profile.max_work_group_size)
    return fmt::format("{} items per group, the device takes {}", group,
                       profile.max_work_group_size);
  const auto bytes = (p.at("TILE_M") + p.at("TILE_N") + 2) * p.at("TILE_K") *
                     static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  if (static_cast<std::uint64_t>(bytes) > profile.local_mem_size)
    return fmt::format("{} bytes of local memory, the device has {}", bytes,
                       profile.local_mem_size);
  return {};
}

VariantSpace tiled_space(const MatmulPlan& plan, const ExtendedDeviceProfile& profile,
                         const KernelConfig& config, std::vector<std::int64_t> work) {
  VariantSpace space;
  space.tunables = {{"TILE_M", {16, 32, 64}},
                    {"TILE_N", {16, 32, 64}},
                    {"TILE_K", {8, 16}},
                    {"WORK", std::move(work)}};
  space.defaults = {{"TILE_M", config.tile_m},
                    {"TILE_N", config.tile_n},
                    {"TILE_K", config.tile_k},
                    {"WORK", config.work_per_thread}};
  const auto dtype = plan.dtype();
  space.declines = [&profile, dtype](const Parameters& p) { return too_large(p, profile, dtype); };
  // GPUs multiply 64-bit integers in many steps, whose registers leave room for few sums; Intel's
  // registers hold few doubles either.
  const bool intel =
      profile.gpu_family >= GPUFamily::intel_gen && profile.gpu_family <= GPUFamily::intel_other;
  const Parameters small = {{"TILE_M", 32}, {"TILE_N", 32}, {"TILE_K", 8}, {"WORK", 2}};
  if ((dtype == DType::int64 || (dtype == DType::float64 && intel)) && !profile.is_cpu &&
      config.work_per_thread > 2 && space.declines(small).empty())
    space.defaults = small;
  // Wider elements may need smaller tiles than the rule had in mind.
  while (!space.declines(space.defaults).empty() && space.defaults["TILE_K"] > 1)
    space.defaults["TILE_K"] /= 2;
  space.sizes = problem_sizes(plan);
  return space;
}

void run_tiled(const OpCall& call, const MatmulPlan& plan, const VariantRun& with,
               const char* name) {
  const auto tile_m = with["TILE_M"], tile_n = with["TILE_N"], tile_k = with["TILE_K"];
  const auto work = with["WORK"];
  const KernelKey key(kTiled, name, {code_of(plan), tile_m, tile_n, tile_k, work});
  const auto kernel = op_kernel(call.queue, key, [&] {
    return base_prologue(plan) + define("TILE_M", tile_m) + define("TILE_N", tile_n) +
           define("TILE_K", tile_k) + define("WORK_M", work) + define("WORK_N", work) +
           define("KERNEL", name);
  });
  const std::int64_t group_n = tile_n / work, group_m = tile_m / work;
  enqueue(call, kernel, plan,
          {static_cast<std::int64_t>(ceil_div(plan.N, tile_n)) * group_n,
           static_cast<std::int64_t>(ceil_div(plan.M, tile_m)) * group_m, plan.batches()},
          {group_n, group_m, 1});
}

OpVariant tiled_variant(const Plan& plan, const char* name, const char* kernel,
                        const char* function, std::vector<std::int64_t> work) {
  OpVariant variant{name, kernel, kTiled};
  variant.declines = [plan, work](const OpCall& call, const ExtendedDeviceProfile& profile) {
    Parameters smallest = {{"TILE_M", 16}, {"TILE_N", 16}, {"TILE_K", 8}, {"WORK", work.back()}};
    return too_large(smallest, profile, plan(call).dtype());
  };
  variant.run = [plan, function](const OpCall& call, const VariantRun& with) {
    run_tiled(call, plan(call), with, function);
  };
  variant.space = [plan, work](const OpCall& call, const ExtendedDeviceProfile& profile,
                               const KernelConfig& config) {
    return tiled_space(plan(call), profile, config, work);
  };
  return variant;
}

// ---- vectors of four

std::string no_vectors(const MatmulPlan& plan) {
  if (plan.N % 4 != 0) return fmt::format("rows of {} elements are no whole vectors of 4", plan.N);
  if (plan.b.column != 1) return "the right factor is not contiguous along its rows";
  return {};
}

void run_vectorized(const OpCall& call, const MatmulPlan& plan, const VariantRun& with) {
  const auto work = with["WORK_M"];
  const auto kernel = op_kernel(
      call.queue, KernelKey(kVectorized, "matmul_vectorized", {code_of(plan), work}), [&] {
        const bool half = plan.dtype() == DType::float16;
        return base_prologue(plan) + define("WORK_M", work) +
               (half ? "#define LOAD4(p, i) vload_half4(0, (p) + (i))\n"
                     : "#define LOAD4(p, i) vload4(0, (p) + (i))\n");
      });
  const bool cpu = device_profile(call.queue).is_cpu;
  const auto wide = static_cast<std::int64_t>(clamped_local(kernel, cpu ? 16 : 64));
  enqueue(call, kernel, plan,
          {static_cast<std::int64_t>(rounded_up(plan.N / 4, wide)),
           static_cast<std::int64_t>(ceil_div(plan.M, work)), plan.batches()},
          {wide, 1, 1});
}

// ---- a vector on one side

// The product as a matrix times a vector; results that lie side by side in the matrix are `wide`.
struct VectorProduct {
  const MatmulSide &matrix, &vector;
  std::int64_t results, result_step, k_step, vector_step;
  bool row, wide;

  explicit VectorProduct(const MatmulPlan& plan)
      : matrix(plan.M == 1 ? plan.b : plan.a),
        vector(plan.M == 1 ? plan.a : plan.b),
        results(plan.M == 1 ? plan.N : plan.M),
        result_step(plan.M == 1 ? matrix.column : matrix.row),
        k_step(plan.M == 1 ? matrix.row : matrix.column),
        vector_step(plan.M == 1 ? vector.column : vector.row),
        row(plan.M == 1),
        wide(result_step == 1 && results > 1 && k_step != 1) {}
};

// The results of a work-item that reads long parts of rows; 0 where the caches hold the matrix, or
// too few would be left for it.
std::int64_t block_width(const VectorProduct& product, const MatmulPlan& plan,
                         const ExtendedDeviceProfile& profile, std::int64_t vec) {
  const auto bytes = product.results * plan.K * static_cast<std::int64_t>(size_of(plan.dtype()));
  if (!outgrow_caches(static_cast<std::uint64_t>(bytes), profile)) return 0;
  const auto items =
      std::max<std::int64_t>(kBlocksPerCore * profile.compute_units / plan.batches(), 1);
  const auto even = static_cast<std::int64_t>(ceil_div(product.results, items));
  const auto width = std::min(static_cast<std::int64_t>(ceil_div(even, vec)) * vec, kWidestBlock);
  return width < kNarrowestBlock ? 0 : width;
}

void run_gemv(const OpCall& call, const MatmulPlan& plan, const VariantRun& with) {
  const VectorProduct product(plan);
  const auto& [matrix, vector, results, result_step, k_step, vector_step, row, wide] = product;
  const std::int64_t along = !wide && k_step == 1 && vector_step == 1 ? 1 : 0;
  const auto& profile = device_profile(call.queue);
  const auto vec = vector_lanes(profile, with["VEC"], compute_dtype(plan.dtype()));
  // A GPU's items read a row together, a CPU's one each.
  auto group = along == 1 && !profile.is_cpu ? with["WG"] : 0;
  while (static_cast<std::size_t>(group) > profile.max_work_group_size) group /= 2;
  // A CPU's items read whole lines of every row.
  const auto strips = static_cast<std::int64_t>(ceil_div(results, kWideStrip)) * plan.batches();
  const auto side_by_side = strips >= kStripsPerCore * profile.compute_units ? kWideStrip : kStrip;
  const auto vectors =
      wide && profile.is_cpu ? std::clamp<std::int64_t>(side_by_side / vec, 1, kMostSums) : 0;
  // Or such long parts of the rows that memory is read in order.
  const auto width = wide && profile.is_cpu ? block_width(product, plan, profile, vec) : 0;
  const KernelKey key(kGemv,
                      width > 0     ? "gemv_block"
                      : vectors > 0 ? "gemv_strip"
                      : wide        ? "gemv_wide"
                      : group > 0   ? "gemv_rows"
                                    : "gemv",
                      {code_of(plan), vec, along, group, vectors});
  const auto kernel = op_kernel(call.queue, key, [&] {
    return base_prologue(plan) + vector_macros(plan.dtype(), vec) + define("ALONG_K", along) +
           (group > 0 ? define("WG", group) : std::string()) +
           (width > 0     ? define("WIDEST", kWidestBlock)
            : vectors > 0 ? define("NV", vectors)
                          : std::string());
  });
  const Long8 size{{results, plan.K, plan.batches(), plan.inner}};
  const Long8 sm{{result_step, k_step, matrix.outer, matrix.inner}};
  const Long8 sv{{vector_step, vector.outer, vector.inner, 0}};
  const Long8 sy{{row ? plan.y.column : plan.y.row, plan.y.outer, plan.y.inner, 0}};
  const auto strip = std::max<std::int64_t>(vectors, 1) * vec;
  const auto items = wide        ? static_cast<std::int64_t>(ceil_div(results, strip))
                     : group > 0 ? results * group
                                 : results;
  const auto local =
      group > 0 ? group : static_cast<std::int64_t>(clamped_local(kernel, with["WG"]));
  const auto residual = plan.dense_residual();
  OpArgs args;
  add_results(args.tensor(matrix.tensor).tensor(vector.tensor), plan, residual);
  for (const auto* four : {&size, &sm, &sv, &sy})
    args.by_value(four->values.data(), sizeof four->values / 2);
  args.value(std::int64_t{row ? 1 : 0});
  if (width > 0)
    return args.value(static_cast<std::int32_t>(width))
        .enqueue(call.queue, kernel,
                 {static_cast<std::int64_t>(ceil_div(results, width)), 1, plan.batches()},
                 {1, 1, 1});
  args.enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(rounded_up(items, local)), 1, plan.batches()},
               {local, 1, 1});
}

VariantSpace gemv_space(const MatmulPlan& plan, const ExtendedDeviceProfile& profile) {
  const auto dtype_width = unit_lanes(profile, compute_dtype(plan.dtype()));
  // A CPU runs a group on one core: a strip each, or some rows, which are too short to be handed
  // out one by one.
  const VectorProduct product(plan);
  const auto per_core = product.results * plan.batches() / profile.compute_units;
  const auto rows = product.wide ? 1 : std::clamp<std::int64_t>(per_core / kGroupsPerCore, 1, 16);
  return {{{"VEC", {2, 4, 8, 16}}, {"WG", {1, 4, 16, 64}}},
          {{"VEC", profile.is_cpu ? dtype_width : 4}, {"WG", profile.is_cpu ? rows : 64}},
          nullptr,
          problem_sizes(plan)};
}

// ---- panels

// Its tiles are copied where the kernel would convert single elements of them again and again, or
// where the lines of a column drive each other out of the caches before the next tile needs them.
bool packs_left(const MatmulPlan& plan, const PanelTile& tile) {
  const auto size = static_cast<std::int64_t>(size_of(plan.dtype()));
  if (plan.dtype() != compute_dtype(plan.dtype())) return plan.N > tile.width();
  return plan.a.column != 1 && plan.a.column * size % kFarApart == 0 &&
         plan.N >= 4 * tile.width() && plan.K >= kManyTerms;
}

// The bytes between rows of a left factor that tiles read where it lies, line after line.
std::int64_t left_step(const MatmulPlan& plan) {
  const auto size = static_cast<std::int64_t>(size_of(plan.dtype()));
  return plan.a.column == 1 && plan.dtype() == compute_dtype(plan.dtype()) ? plan.a.row * size : 0;
}

}  // namespace

void packed_product(const Queue& queue, const MatmulPlan& plan, const PanelTile& tile) {
  const auto& profile = device_profile(queue);
  const auto acc = compute_dtype(plan.dtype());
  const PanelRoom room(tile, acc, profile);
  const ProductSize size{plan.M, plan.N, plan.K, plan.batches()};
  const bool left = packs_left(plan, tile);
  const bool far = plan.K * plan.N * static_cast<std::int64_t>(size_of(plan.dtype())) >
                   4 * static_cast<std::int64_t>(profile.local_mem_size);
  const auto cut = share_product(
      size, tile, room, profile.compute_units,
      (plan.b.column == 1 ? kPackRows : kPackColumns) + (far ? kPackFar : 0), left ? kPackLeft : 0);
  const bool own_sums = plan.K > cut.terms && (plan.dtype() != acc || plan.y.column != 1);
  const KernelKey key(kPacked, "matmul_packed",
                      {code_of(plan), tile.bits(), left ? 1 : 0, own_sums ? 1 : 0});
  const auto kernel = op_kernel(queue, key, [&] {
    return base_prologue(plan) + tile.defines(plan.dtype()) + room.defines() +
           define("PACK_LEFT", left ? 1 : 0) + define("OWN_SUMS", own_sums ? 1 : 0);
  });
  auto sizes = plan.sizes();
  sizes.values[3] = cut.strip;
  sizes.values[5] = cut.tiles, sizes.values[6] = cut.panels, sizes.values[7] = cut.terms;
  const auto factors = plan.factor_strides(), result = plan.result_strides();
  const auto residual = plan.dense_residual();
  OpArgs args;
  add_results(args.tensor(plan.a.tensor).tensor(plan.b.tensor), plan, residual);
  Tensor sums;
  if (own_sums) args.tensor(sums = Tensor::empty(queue, {plan.batches(), plan.M, plan.N}, acc));
  args.by_value(sizes.values.data(), sizeof sizes.values)
      .by_value(factors.values.data(), sizeof factors.values)
      .by_value(result.values.data(), sizeof result.values / 2)
      .value(cut.extra)
      .enqueue(queue, kernel, {cut.items, 1, plan.batches()}, {1, 1, 1});
}

std::vector<OpVariant> matmul_variants(Plan plan) {
  OpVariant gemv{"matmul.gemv", "MATMUL_GEMV", kGemv};
  gemv.declines = [plan](const OpCall& call, const ExtendedDeviceProfile&) {
    const auto p = plan(call);
    return p.M == 1 || p.N == 1 ? std::string()
                                : fmt::format("a {}x{} result is no vector", p.M, p.N);
  };
  gemv.run = [plan](const OpCall& call, const VariantRun& with) {
    run_gemv(call, plan(call), with);
  };
  gemv.space = [plan](const OpCall& call, const ExtendedDeviceProfile& profile,
                      const KernelConfig&) { return gemv_space(plan(call), profile); };

  OpVariant packed{"matmul.packed", "MATMUL_PACKED", kPacked};
  packed.run = [plan](const OpCall& call, const VariantRun& with) {
    const auto p = plan(call);
    if (p.K == 0) return run_naive(call, p);  // nothing to pack, and nothing to hurry for
    packed_product(call.queue, p, PanelTile(with));
  };
  packed.space = [plan](const OpCall& call, const ExtendedDeviceProfile&,
                        const KernelConfig& config) {
    const auto p = plan(call);
    return panel_space(config, p.dtype(), PanelProduct{p.N, p.M, p.K, left_step(p)},
                       problem_sizes(p));
  };

  OpVariant vectorized{"matmul.vectorized", "MATMUL_VECTORIZED", kVectorized};
  vectorized.declines = [plan](const OpCall& call, const ExtendedDeviceProfile&) {
    return no_vectors(plan(call));
  };
  vectorized.run = [plan](const OpCall& call, const VariantRun& with) {
    run_vectorized(call, plan(call), with);
  };
  vectorized.space = [plan](const OpCall& call, const ExtendedDeviceProfile&, const KernelConfig&) {
    return VariantSpace{
        {{"WORK_M", {1, 2, 4, 8}}}, {{"WORK_M", 4}}, nullptr, problem_sizes(plan(call))};
  };

  OpVariant naive{"matmul.naive", "MATMUL_NAIVE", kNaive};
  naive.run = [plan](const OpCall& call, const VariantRun&) { run_naive(call, plan(call)); };

  return {std::move(gemv),
          std::move(packed),
          tiled_variant(plan, "matmul.register_tiled", "MATMUL_REGISTER_TILED",
                        "matmul_register_tiled", {4, 8}),
          tiled_variant(plan, "matmul.tiled", "MATMUL_TILED", "matmul_tiled", {1, 2}),
          std::move(vectorized),
          std::move(naive)};
}

}  // namespace netcl
