// The four ways to reduce on an OpenCL device.
#include <algorithm>
#include <limits>
#include <utility>

#include "ops/kernels.h"
#include "ops/reduction/reduction.h"
#include "ops/softmax/rows.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/reduction/reduce.cl";
constexpr const char* kVectorPath = "ops/reduction/reduce_vectors.cl";
constexpr const char* kStatePath = "ops/reduction/state_vectors.cl";
constexpr const char* kRunsPath = "ops/reduction/runs.cl";
constexpr std::int64_t kGroup = 256;           // items of a work-group, at most
constexpr std::int64_t kLanes = 16;            // accumulators of a work-item on a CPU
constexpr std::int64_t kSideBySide = 32;       // results that a warp of a GPU reads together
constexpr std::int64_t kChunkElements = 4096;  // of a part: less is not worth a work-item
constexpr std::int64_t kGpuChunkElements = 128;
constexpr std::int64_t kMaxParts = 256;
constexpr std::int64_t kStrip = 512;  // results side by side that an item adds up at once
constexpr std::int64_t kJoined = 16;  // rows taken as one
constexpr std::int64_t kVectorElements = 16384;  // of a part in vectors
constexpr std::int64_t kStateBytes = 32;         // at least the largest STATE

const char* lowest_of(DType dtype) {
  return is_floating(dtype) ? "(-INFINITY)" : dtype == DType::int64 ? "LONG_MIN" : "INT_MIN";
}
const char* highest_of(DType dtype) {
  return is_floating(dtype) ? "INFINITY" : dtype == DType::int64 ? "LONG_MAX" : "INT_MAX";
}

// One call, its plan, and its kernels.
class Reduce {
 public:
  Reduce(const ReductionInfo& info, const OpCall& call)
      : info_(info),
        call_(call),
        plan_(plan_reduction(call.inputs[0].shape(),
                             reduced_axes(info, call.attributes, call.inputs[0].ndim()))),
        x_(call.inputs[0]),
        y_(call.outputs[0]) {}

  // Axes with others between them where they lie, in runs that fill a vector.
  bool in_runs() const {
    return plan_.runs && plan_.runs->span >= vec() && x_.numel() > 0 &&
           (in_vectors() || states_in_vectors());
  }
  Reduce& permute() {
    if (!plan_.order.empty()) x_ = x_.permute(plan_.order).contiguous();
    return *this;
  }

  // Neighbours that do not fill a vector of states: rows one behind the other.
  void line_up() {
    if (!states_in_vectors() || plan_.inner == 1 || plan_.inner >= vec()) return;
    x_ = x_.reshape({plan_.outer, plan_.reduced, plan_.inner}).permute({0, 2, 1}).contiguous();
    plan_.outer *= std::exchange(plan_.inner, 1);
  }

  const ReductionPlan& plan() const { return plan_; }

  void sequential() const {
    const auto kernel = kernel_of("reduce_sequential");
    auto args = OpArgs().tensor(x_).tensor(y_);
    sizes(args).value(plan_.inner);
    enqueue(finished(args), kernel, plan_.results(), 64);
  }

  // `parts` work-groups per result, and a second stage where there are several. Results that lie
  // side by side belong to neighbouring items instead: a group's own would be `inner` apart.
  void groups(std::int64_t parts, std::int64_t local) const {
    const auto& profile = device_profile(call_.queue);
    if (!profile.is_cpu && plan_.inner >= kSideBySide) return chunks(profile.compute_units);
    const auto kernel = kernel_of("reduce_group");
    const auto states = states_of(parts);
    auto args = OpArgs().tensor(x_).tensor(y_).tensor(states);
    sizes(args).value(plan_.inner).value(parts);
    const auto group = clamped_local(kernel, std::min(local, kGroup));
    finished(args).enqueue(call_.queue, kernel,
                           static_cast<std::size_t>(plan_.results() * parts) * group, group);
    if (parts > 1) combine(states, parts, plan_.outer, plan_.inner);
  }

  void runs(std::int64_t units) const {
    const auto [outer, repeats, inner, span] = *plan_.runs;
    const auto parts = std::min(shares(units, plan_.results(), plan_.reduced), repeats);
    const auto block = parts > 1 ? 1 : rows_per_item(call_.queue, {plan_.results(), plan_.reduced});
    const auto states = states_of(parts);
    auto args = OpArgs().tensor(x_).tensor(y_).tensor(states);
    args.value(outer).value(repeats).value(inner).value(span).value(parts);
    finished(args).value(block);
    const auto blocks = static_cast<std::int64_t>(ceil_div(plan_.results(), block));
    enqueue(args, vector_kernel_of("reduce_runs", kRunsPath), blocks * parts, 1);
    if (parts > 1) combine(states, parts, outer, inner);
  }

  void chunks(std::int64_t units) const {
    if (in_vectors() || states_in_vectors())
      return plan_.inner == 1 ? row_vectors(units) : column_vectors(units);
    const bool rows = plan_.inner == 1;
    const bool cpu = device_profile(call_.queue).is_cpu;
    const auto strips = static_cast<std::int64_t>(ceil_div(plan_.inner, lanes()));
    const auto owners = plan_.outer * strips;
    const auto most = static_cast<std::int64_t>(ceil_div(
        plan_.reduced * std::min(plan_.inner, lanes()), cpu ? kChunkElements : kGpuChunkElements));
    const auto wanted = (cpu ? 4 : 4 * kGroup) * units;  // items that keep the device busy
    const auto parts = std::clamp<std::int64_t>((wanted + owners - 1) / owners, 1,
                                                std::max<std::int64_t>(most, 1));
    const auto states = states_of(parts);
    const auto kernel = kernel_of(rows ? "reduce_rows" : "reduce_columns");
    auto args = OpArgs().tensor(x_).tensor(y_).tensor(states);
    sizes(args);
    if (!rows) args.value(plan_.inner);
    args.value(parts);
    // Few items are shared out one by one; many in groups, each of which costs a start.
    const auto items = owners * parts;
    enqueue(finished(args), kernel, items, !cpu || items >= 512 * units ? 64 : 1);
    if (parts > 1) combine(states, parts, plan_.outer, plan_.inner);
  }

 private:
  std::int64_t lanes() const { return device_profile(call_.queue).is_cpu ? kLanes : 1; }

  bool has_one_number() const {  // as its state
    const auto kind = info_.kind;
    return !info_.is_arg() && kind != ReductionKind::var && kind != ReductionKind::logsumexp;
  }
  // Sums of integers are longer than their elements.
  bool in_vectors() const {
    return device_profile(call_.queue).is_cpu && has_one_number() &&
           (is_floating(x_.dtype()) || info_.needs_elements());
  }
  bool states_in_vectors() const { return device_profile(call_.queue).is_cpu && !has_one_number(); }
  std::int64_t vec() const { return row_lanes(x_.dtype(), device_profile(call_.queue)); }

  // How many items share one of `owners` amounts of work, of so many elements each.
  static std::int64_t shares(std::int64_t units, std::int64_t owners, std::int64_t elements) {
    const auto wanted =
        static_cast<std::int64_t>(ceil_div(16 * units, std::max<std::int64_t>(owners, 1)));
    return std::clamp<std::int64_t>(wanted, 1,
                                    std::max<std::int64_t>(elements / kVectorElements, 1));
  }

  void row_vectors(std::int64_t units) const {
    const RowPlan rows{plan_.outer, plan_.reduced, 1};
    const auto parts = shares(units, plan_.outer, plan_.reduced);
    const auto block = rows_per_item(call_.queue, rows);
    const auto states = states_of(parts);
    auto args = OpArgs().tensor(x_).tensor(y_).tensor(states);
    sizes(args).value(parts);
    finished(args).value(block);
    const auto items =
        parts > 1 ? plan_.outer * parts : static_cast<std::int64_t>(ceil_div(plan_.outer, block));
    enqueue(args, vector_kernel_of("reduce_rows", vector_path()), items, 1);
    if (parts > 1) combine(states, parts, plan_.outer, plan_.inner);
  }

  void column_vectors(std::int64_t units) const {
    const bool states_too = states_in_vectors();
    const auto joined = !states_too && plan_.inner * kJoined <= kStrip ? kJoined : 1;
    const auto strips = joined > 1 ? 1 : static_cast<std::int64_t>(ceil_div(plan_.inner, kStrip));
    const auto parts = shares(units, plan_.outer * strips,
                              plan_.reduced * std::min<std::int64_t>(plan_.inner, kStrip));
    const auto states = states_of(parts);
    auto args = OpArgs().tensor(x_).tensor(y_).tensor(states);
    sizes(args).value(plan_.inner).value(parts);
    finished(args).value(states_too ? strips : joined);
    enqueue(args, vector_kernel_of("reduce_columns", vector_path()), plan_.outer * strips * parts,
            1);
    if (parts > 1) combine(states, parts, plan_.outer, plan_.inner);
  }

  const char* vector_path() const { return states_in_vectors() ? kStatePath : kVectorPath; }
  KernelPtr vector_kernel_of(const char* name, const char* path) const {
    const auto dtype = x_.dtype();
    return op_kernel(
        call_.queue,
        {path, name, {static_cast<std::int64_t>(info_.kind), static_cast<std::int64_t>(dtype)}},
        [&] {
          return prologue(dtype) + row_macros(dtype, device_profile(call_.queue)) +
                 (is_floating(dtype) ? define("FLOATING", 1) : "") + define("STRIP", kStrip) +
                 define("ONE_NUMBER", has_one_number());
        });
  }

  KernelPtr kernel_of(const char* name) const {
    const auto dtype = x_.dtype();
    return op_kernel(
        call_.queue,
        {kPath, name, {static_cast<std::int64_t>(info_.kind), static_cast<std::int64_t>(dtype)}},
        [&] { return prologue(dtype) + define("LANES", lanes()); });
  }

  std::string prologue(DType dtype) const {
    const auto acc = accumulator(info_, dtype);
    return type_macros("T", dtype) + type_macros("Y", y_.dtype()) +
           define("ACC", compute_type(acc)) + define(info_.macro, 1) +
           define("LOWEST", lowest_of(acc)) + define("HIGHEST", highest_of(acc)) +
           define("WG_MAX", kGroup);
  }

  // With one part nothing is written there.
  Tensor states_of(std::int64_t parts) const {
    if (parts == 1) return y_;
    return Tensor::empty(call_.queue, Shape{plan_.results() * parts * kStateBytes}, DType::uint8);
  }

  OpArgs& sizes(OpArgs& args) const { return args.value(plan_.outer).value(plan_.reduced); }
  OpArgs& finished(OpArgs& args) const {
    const bool var = info_.kind == ReductionKind::var;
    return args.number(var ? call_.attributes.number("correction") : 0,
                       accumulator(info_, x_.dtype()));
  }

  void combine(const Tensor& states, std::int64_t parts, std::int64_t outer,
               std::int64_t inner) const {
    const auto kernel = kernel_of("reduce_parts");
    auto args = OpArgs().tensor(states).tensor(y_);
    args.value(outer).value(plan_.reduced).value(inner).value(parts);
    enqueue(finished(args), kernel, plan_.results(), 64);
  }

  void enqueue(const OpArgs& args, const KernelPtr& kernel, std::int64_t items,
               std::int64_t local) const {
    const auto group = static_cast<std::int64_t>(clamped_local(kernel, local));
    args.enqueue(call_.queue, kernel, rounded_up(items, group), static_cast<std::size_t>(group));
  }

  const ReductionInfo& info_;
  const OpCall& call_;
  ReductionPlan plan_;
  Tensor x_;
  const Tensor& y_;
};

std::int64_t parts_of(const ReductionPlan& plan) {
  const auto wanted = static_cast<std::int64_t>(ceil_div(plan.reduced, 2 * kChunkElements));
  // Enough groups to fill a device; more parts would only lengthen the second stage.
  const auto room =
      std::max<std::int64_t>(kMaxParts * 4 / std::max<std::int64_t>(plan.results(), 1), 2);
  return std::clamp<std::int64_t>(
      wanted, std::min<std::int64_t>(2, std::max<std::int64_t>(plan.reduced, 1)),
      std::min(kMaxParts, room));
}

}  // namespace

std::vector<OpVariant> reduction_variants(const ReductionInfo& info) {
  OpVariant chunked{"reduction.chunked", "REDUCTION_CHUNKED", kPath};
  chunked.run = [&info](const OpCall& call, const VariantRun&) {
    Reduce reduce(info, call);
    const std::int64_t units = device_profile(call.queue).compute_units;
    if (reduce.in_runs()) return reduce.runs(units);
    reduce.permute().line_up();
    reduce.chunks(units);
  };
  OpVariant parallel{"reduction.parallel", "REDUCTION_PARALLEL", kPath};
  parallel.run = [&info](const OpCall& call, const VariantRun& with) {
    Reduce(info, call).permute().groups(1, with.config.local_size_1d);
  };
  OpVariant workgroup{"reduction.workgroup", "REDUCTION_WORKGROUP", kPath};
  workgroup.run = [&info](const OpCall& call, const VariantRun& with) {
    Reduce reduce(info, call);
    reduce.permute().groups(parts_of(reduce.plan()), with.config.local_size_1d);
  };
  OpVariant sequential{"reduction.sequential", "REDUCTION_SEQUENTIAL", kPath};
  sequential.run = [&info](const OpCall& call, const VariantRun&) {
    Reduce(info, call).permute().sequential();
  };
  return {chunked, parallel, workgroup, sequential};
}

}  // namespace netcl
