#include "ops/softmax/rows.h"

#include <algorithm>

#include "base/check.h"
#include "ops/memory_hints.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

constexpr std::int64_t kGroup = 256;
constexpr std::int64_t kBlockElements = 16384;  // of the rows of a work-item
constexpr std::int64_t kBlocksPerUnit = 8;
constexpr std::int64_t kFetchAhead = 2048;  // bytes

}  // namespace

RowPlan plan_rows(const Shape& shape, std::int64_t axis) {
  RowPlan plan;
  for (std::int64_t i = 0; i < shape.rank(); ++i)
    (i < axis ? plan.outer : i == axis ? plan.n : plan.inner) *= shape[i];
  return plan;
}

void set_row_variants(OpDef& op, const char* item, const char* group, const char* path,
                      const std::function<RowPlan(const OpCall&)>& plan, const TeamRun& run) {
  OpVariant alone{item, "ROWWISE_ITEM", path};
  alone.run = [run](const OpCall& call, const VariantRun&) { run(call, Team::item); };
  OpVariant together{group, "ROWWISE_GROUP", path};
  together.run = [run](const OpCall& call, const VariantRun&) { run(call, Team::group); };
  op.variants = {std::move(alone), std::move(together)};
  op.problem = [plan](const OpCall& call) {
    const auto rows = plan(call);
    return KernelProblem{"rowwise", {Shape{rows.outer, rows.n, rows.inner}}, call.dtype(), {}};
  };
}

KernelPtr team_kernel(const Queue& queue, const char* path, const char* kernel, DType dtype,
                      Team team, std::int64_t bits, const std::string& more) {
  const bool group = team == Team::group;
  // On a GPU more accumulators of an item alone would end up in memory, and so would those of a
  // loop that stays one; a CPU's compiler makes vectors of the loop.
  const bool cpu = device_profile(queue).is_cpu;
  const std::int64_t lanes = group ? 1 : cpu ? 16 : 4;
  return op_kernel(queue, {path, kernel, {static_cast<std::int64_t>(dtype), group ? 1 : 0, bits}},
                   [&] {
                     return t_and_acc(dtype) + define("LANES", lanes) +
                            define("UNROLL", cpu ? "" : "_Pragma(\"unroll\")") +
                            (group ? define("GROUP", 1) + define("WG_MAX", kGroup) : "") + more;
                   });
}

void enqueue_teams(const Queue& queue, const KernelPtr& kernel, const OpArgs& args, Team team,
                   std::int64_t rows) {
  if (team == Team::item) return enqueue_items(queue, kernel, args, rows);
  const auto group = clamped_local(kernel, kGroup);
  args.enqueue(queue, kernel, static_cast<std::size_t>(rows) * group, group);
}

void enqueue_items(const Queue& queue, const KernelPtr& kernel, const OpArgs& args,
                   std::int64_t items) {
  // Few items are shared out one by one: on a CPU a group runs on one core.
  const auto& profile = device_profile(queue);
  const bool few = profile.is_cpu && items < 512 * static_cast<std::int64_t>(profile.compute_units);
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, few ? 1 : 64));
  args.enqueue(queue, kernel, rounded_up(items, local), local);
}

std::string lane_macros(DType dtype, std::int64_t vec) {
  const bool wide = size_of(compute_dtype(dtype)) == 8;
  const auto integers = fmt::format("{}{}", wide ? "long" : "int", vec);
  std::vector<std::string> numbers;
  for (std::int64_t l = 0; l < vec; ++l) numbers.push_back(std::to_string(l));
  auto text = define("LANE", wide ? "long" : "int") + define("LANEV", integers) +
              define("LANES", fmt::format("(({})({}))", integers, join(numbers, ", ")));
  for (const int width : {2, 4, 8})
    text += define(fmt::format("ACC{}", width), fmt::format("{}{}", compute_type(dtype), width));
  if (compute_dtype(dtype) == DType::float32)
    text += define("FLOATS", 1) + define("AS_LANES", fmt::format("as_int{}", vec)) +
            define("AS_ACCV", fmt::format("as_float{}", vec));
  return text;
}

std::int64_t row_lanes(DType dtype, const ExtendedDeviceProfile& profile) {
  const auto compute = compute_dtype(dtype);
  return vector_lanes(profile, size_of(compute) == 8 ? 8 : 16, compute);
}

std::string row_macros(DType dtype, const ExtendedDeviceProfile& profile) {
  const auto vec = row_lanes(dtype, profile);
  auto text = gains_by_fetching(profile) ? std::string() : define("FETCH(p)", "((void)0)");
  text += kMemoryHints + vector_macros(dtype, vec) + lane_macros(dtype, vec) +
          define("FETCH_AHEAD", kFetchAhead / static_cast<std::int64_t>(size_of(dtype)));
  if (dtype == DType::float16) {
    text += fmt::format("#define STOREV(p, i, v) store_halves{}(v, (p) + (i))\n", vec);
  } else {
    const auto name = fmt::format("{}{}", compute_type(dtype), vec);
    text += fmt::format("#define STOREV(p, i, v) vstore{}(v, 0, (p) + (i))\n", vec) +
            loose_vectors(compute_type(dtype), vec) +
            fmt::format("#define LOOSE_LOADV(p, i) load_{}((p) + (i))\n", name) +
            fmt::format("#define LOOSE_STOREV(p, i, v) store_{}(v, (p) + (i))\n", name);
  }
  if (dtype != DType::float16) text += define("SAME", 1);
  return text;
}

bool in_vectors(const Queue& queue, const RowPlan& plan, Team team) {
  return team == Team::item && plan.inner == 1 && plan.n > 0 && device_profile(queue).is_cpu;
}

KernelPtr vector_kernel(const Queue& queue, const char* path, const char* kernel, DType dtype,
                        std::int64_t bits, const std::string& more) {
  return op_kernel(queue, {path, kernel, {static_cast<std::int64_t>(dtype), bits}}, [&] {
    return t_and_acc(dtype) + row_macros(dtype, device_profile(queue)) + more;
  });
}

KernelPtr vector_kernel(const OpCall& call, const char* path, const char* kernel, std::int64_t bits,
                        const std::string& more) {
  const bool past =
      outgrow_caches(bytes_of(call.inputs) + bytes_of(call.outputs), device_profile(call.queue));
  return vector_kernel(call.queue, path, kernel, call.dtype(), 2 * bits + (past ? 1 : 0),
                       past ? more + define("PAST_CACHES", 1) : more);
}

std::int64_t rows_per_item(const Queue& queue, const RowPlan& plan) {
  const std::int64_t items = kBlocksPerUnit * device_profile(queue).compute_units;
  const auto shared = static_cast<std::int64_t>(ceil_div(plan.rows(), items));
  const auto worth = std::max<std::int64_t>(kBlockElements / std::max<std::int64_t>(plan.n, 1), 1);
  return std::max<std::int64_t>(std::min(shared, worth), 1);
}

void enqueue_blocks(const Queue& queue, const KernelPtr& kernel, OpArgs args, const RowPlan& plan) {
  const auto block = rows_per_item(queue, plan);
  args.value(block).enqueue(queue, kernel, std::max<std::size_t>(ceil_div(plan.rows(), block), 1),
                            1);
}

void check_floating(const OpSpec& spec, std::size_t input) {
  const auto dtype = spec.dtype(input);
  check<DtypeError>(is_floating(dtype) && dtype != DType::bfloat16,
                    "[{}] the dtype must be float16, float32 or float64: {}", spec.op.name,
                    name_of(dtype));
}

void check_same(const OpSpec& spec, std::size_t a, std::size_t b) {
  if (!(spec.shape(a) == spec.shape(b)))
    fail<ShapeError>("[{}] the shapes must be equal: {} and {}", spec.op.name,
                     spec.shape(a).to_string(), spec.shape(b).to_string());
  check<DtypeError>(spec.dtype(a) == spec.dtype(b), "[{}] the dtypes must be equal: {} and {}",
                    spec.op.name, name_of(spec.dtype(a)), name_of(spec.dtype(b)));
}

}  // namespace netcl
