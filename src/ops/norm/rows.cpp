// layer_norm, rms_norm, group_norm and their gradients: one implementation, three ways to see x.
#include <cmath>

#include "base/check.h"
#include "base/format.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/norm/norm.h"
#include "ops/registry.h"
#include "ops/softmax/host_rows.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/norm/rows.cl";
constexpr const char* kVectorPath = "ops/norm/rows_vectors.cl";

enum class Kind { layer, rms, group };

struct NormInfo {
  Kind kind;
  const char *name, *backward, *summary;
  const char *item, *group_variant, *backward_item, *backward_group;
  bool rms() const { return kind == Kind::rms; }
};

constexpr NormInfo kInfos[] = {
    {Kind::layer, "layer_norm", "layer_norm_backward", "mean 0 and variance 1 over the last axes",
     "layer_norm.item", "layer_norm.group", "layer_norm_backward.item",
     "layer_norm_backward.group"},
    {Kind::rms, "rms_norm", "rms_norm_backward", "mean square 1 over the last axes",
     "rms_norm.item", "rms_norm.group", "rms_norm_backward.item", "rms_norm_backward.group"},
    {Kind::group, "group_norm", "group_norm_backward",
     "mean 0 and variance 1 over the channels of each group", "group_norm.item", "group_norm.group",
     "group_norm_backward.item", "group_norm_backward.group"},
};

NormPlan plan_of(Kind kind, const Shape& shape, const Attributes& attributes) {
  NormPlan plan;
  if (kind == Kind::group) {
    plan.groups = attributes.integer("groups");
    plan.rows = shape[0] * plan.groups;
    for (std::int64_t i = 2; i < shape.rank(); ++i) plan.span *= shape[i];
    plan.n = shape[1] / plan.groups * plan.span;
    return plan;
  }
  const auto axes = attributes.integer("axes");
  for (std::int64_t i = 0; i < shape.rank(); ++i)
    (i < shape.rank() - axes ? plan.rows : plan.n) *= shape[i];
  return plan;
}

// The shape of scale and shift.
Shape parameter_shape(Kind kind, const Shape& shape, const Attributes& attributes) {
  if (kind == Kind::group) return Shape{shape[1]};
  const auto axes = attributes.integer("axes");
  return Shape(std::vector<std::int64_t>(shape.end() - axes, shape.end()));
}

void check_x(const NormInfo& info, const OpSpec& spec) {
  check_floating(spec);
  const auto& shape = spec.shape(0);
  if (info.kind == Kind::group) {
    const auto groups = spec.attributes.integer("groups");
    check<ShapeError>(shape.rank() >= 2, "[{}] x must be (N, C, ...): {}", spec.op.name,
                      shape.to_string());
    check<ShapeError>(groups >= 1 && shape[1] % groups == 0,
                      "[{}] the channels must divide into the groups: {} channels, {} groups",
                      spec.op.name, shape[1], groups);
    return;
  }
  const auto axes = spec.attributes.integer("axes");
  check<ShapeError>(axes >= 1 && axes <= shape.rank(),
                    "[{}] scale must have between 1 and as many axes as x: {} and {}", spec.op.name,
                    axes, shape.to_string());
}

void check_parameter(const NormInfo& info, const OpSpec& spec, std::size_t input,
                     const char* what) {
  if (!spec.has(input)) return;
  const auto wanted = parameter_shape(info.kind, spec.shape(0), spec.attributes);
  if (!(spec.shape(input) == wanted))
    fail<ShapeError>("[{}] {} must have the shape {}: {}", spec.op.name, what, wanted.to_string(),
                     spec.shape(input).to_string());
  check<DtypeError>(spec.dtype(input) == spec.dtype(), "[{}] {} must have the dtype of x, {}: {}",
                    spec.op.name, what, name_of(spec.dtype()), name_of(spec.dtype(input)));
}

std::vector<TensorSpec> infer(const NormInfo& info, const OpSpec& spec) {
  check_x(info, spec);
  check_parameter(info, spec, 1, "scale");
  check_parameter(info, spec, 2, "shift");
  return {{spec.shape(0), spec.dtype()}};
}

// Without "parameters": false also the gradients of scale and shift are computed.
bool wants_parameters(const Attributes& attributes) {
  return !attributes.has("parameters") || attributes.flag("parameters");
}

// Inputs x, scale, dy.
std::vector<TensorSpec> infer_backward(const NormInfo& info, const OpSpec& spec) {
  check_x(info, spec);
  check_parameter(info, spec, 1, "scale");
  check_same(spec, 0, 2);
  const TensorSpec parameter{parameter_shape(info.kind, spec.shape(0), spec.attributes),
                             spec.dtype()};
  if (!wants_parameters(spec.attributes)) return {{spec.shape(0), spec.dtype()}};
  return {{spec.shape(0), spec.dtype()}, parameter, parameter};
}

// ---- OpenCL

KernelPtr kernel_of(const NormInfo& info, const OpCall& call, const char* name, Team team) {
  const std::int64_t rms = info.rms() ? 1 : 0;
  return team_kernel(call.queue, kPath, name, call.dtype(), team, rms, define("RMS", rms));
}

KernelPtr vector_kernel_of(const NormInfo& info, const OpCall& call, const char* name,
                           bool backward) {
  const std::int64_t rms = info.rms() ? 1 : 0, scaled = backward && call.has(1) ? 1 : 0;
  const std::int64_t parameters = backward && wants_parameters(call.attributes) ? 1 : 0;
  return vector_kernel(
      call, kVectorPath, name, rms + 2 * scaled + 4 * parameters,
      define("RMS", rms) + define("SCALED", scaled) + define("PARAMETERS", parameters));
}

OpArgs& sizes(OpArgs& args, const NormPlan& plan) {
  return args.value(plan.rows).value(plan.n).value(plan.groups).value(plan.span);
}

std::int32_t flag(bool is_set) { return is_set ? 1 : 0; }

void run(const NormInfo& info, const OpCall& call, Team team) {
  const auto& x = call.inputs[0];
  const auto plan = plan_of(info.kind, x.shape(), call.attributes);
  OpArgs args;  // a tensor that was left out is not read; x takes its place
  args.tensor(x).tensor(call.has(1) ? call.inputs[1] : x).tensor(call.has(2) ? call.inputs[2] : x);
  args.tensor(call.outputs[0]);
  sizes(args, plan).value(flag(call.has(1))).value(flag(call.has(2)));
  args.number(call.attributes.number("eps"), call.dtype());
  const RowPlan rows{plan.rows, plan.n, 1};
  if (in_vectors(call.queue, rows, team))
    return enqueue_blocks(call.queue, vector_kernel_of(info, call, "norm_forward", false),
                          std::move(args), rows);
  enqueue_teams(call.queue, kernel_of(info, call, "norm_forward", team), args, team, plan.rows);
}

// Parts of the batch for the sums over it, so that there are enough work-items.
std::int64_t parts_of(const OpCall& call, const NormPlan& plan) {
  const std::int64_t wanted =
      device_profile(call.queue).is_cpu ? 4 * device_profile(call.queue).compute_units : 4096;
  const auto parts = static_cast<std::int64_t>(ceil_div(wanted, plan.channels()));
  return std::clamp<std::int64_t>(parts, 1, std::max<std::int64_t>(plan.batch(), 1));
}

// dscale and dshift from sums (2, parts, channels).
void store_parameters(const OpCall& call, const Tensor& sums) {
  const auto total =
      sums.size(1) == 1
          ? sums
          : apply("sum", {sums}, {{"axes", std::vector<std::int64_t>{1}}, {"keepdim", true}});
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto& output = call.outputs[static_cast<std::size_t>(i) + 1];
    output.copy_from(total.select(0, i).reshape(output.shape().sizes()));
  }
}

void run_parameters(const NormInfo& info, const OpCall& call, const NormPlan& plan,
                    const Tensor& means, const Tensor& inverses) {
  const auto parts = parts_of(call, plan);
  const auto sums = Tensor::empty(call.queue, Shape{2, parts, plan.channels()}, means.dtype());
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.inputs[2]).tensor(means).tensor(inverses).tensor(sums);
  sizes(args, plan).value(parts);
  enqueue_items(call.queue, kernel_of(info, call, "norm_parameters", Team::item), args,
                plan.channels() * parts);
  store_parameters(call, sums);
}

// dx, and per work-item the sums over its rows for the parameters.
void run_backward_vectors(const NormInfo& info, const OpCall& call, const NormPlan& plan) {
  const auto& x = call.inputs[0];
  const bool parameters = wants_parameters(call.attributes);
  // Few parts: each has sums of its own, which are added up in the end.
  const std::int64_t wanted = 4 * device_profile(call.queue).compute_units;
  const auto block = parameters ? static_cast<std::int64_t>(ceil_div(plan.rows, wanted))
                                : rows_per_item(call.queue, {plan.rows, plan.n, 1});
  const auto parts = static_cast<std::int64_t>(ceil_div(plan.rows, block));
  const auto sums = Tensor::empty(call.queue, Shape{2, parameters ? parts : 0, plan.channels()},
                                  compute_dtype(call.dtype()));
  OpArgs args;
  args.tensor(x).tensor(call.has(1) ? call.inputs[1] : x).tensor(call.inputs[2]);
  args.tensor(call.outputs[0]).tensor(parameters ? sums : x);
  sizes(args, plan).number(call.attributes.number("eps"), call.dtype());
  args.value(block).value(parts);
  args.enqueue(call.queue, vector_kernel_of(info, call, "norm_backward", true),
               static_cast<std::size_t>(parts), 1);
  if (parameters) store_parameters(call, sums);
}

void run_backward(const NormInfo& info, const OpCall& call, Team team) {
  const auto& x = call.inputs[0];
  if (x.numel() == 0) {
    for (const auto& output : call.outputs)
      output.copy_from(Tensor::from_shape(call.queue, output.shape(), output.dtype()));
    return;
  }
  const auto plan = plan_of(info.kind, x.shape(), call.attributes);
  if (in_vectors(call.queue, {plan.rows, plan.n, 1}, team))
    return run_backward_vectors(info, call, plan);
  const auto acc = compute_dtype(call.dtype());
  const auto means = Tensor::empty(call.queue, Shape{plan.rows}, acc);
  const auto inverses = Tensor::empty(call.queue, Shape{plan.rows}, acc);
  OpArgs args;
  args.tensor(x).tensor(call.has(1) ? call.inputs[1] : x).tensor(call.inputs[2]);
  args.tensor(call.outputs[0]).tensor(means).tensor(inverses);
  sizes(args, plan).value(flag(call.has(1))).number(call.attributes.number("eps"), call.dtype());
  enqueue_teams(call.queue, kernel_of(info, call, "norm_backward", team), args, team, plan.rows);
  if (wants_parameters(call.attributes)) run_parameters(info, call, plan, means, inverses);
}

// ---- host

template <class V>
struct RowStatistics {
  V mean = 0, inverse = 0;
  RowStatistics() = default;
  RowStatistics(const std::vector<V>& row, bool rms, double eps) {
    const auto n = length_of(row);
    if (!rms) mean = row_math::functions<V>().sum(row.data(), n) / static_cast<V>(n);
    const V squares = row_math::functions<V>().squares(row.data(), n, mean);
    inverse = V(1) / std::sqrt(squares / static_cast<V>(n) + static_cast<V>(eps));
  }
};

// The elements of scale or shift that belong to a row, as many as it has.
template <class V, int number, class T>
const V* row_of(const NormPlan& plan, const T* values, std::int64_t row) {
  const T* from = values + plan.channel(row, 0);
  if constexpr (std::is_same_v<T, V>)
    if (plan.span == 1) return from;
  auto& all = scratch_row<V, number>(plan.n);
  for (std::int64_t i = 0; i < plan.n; i += plan.span, ++from)
    std::fill_n(all.begin() + i, plan.span, static_cast<V>(*from));
  return all.data();
}

void host(const NormInfo& info, const OpCall& call) {
  const auto plan = plan_of(info.kind, call.inputs[0].shape(), call.attributes);
  const double eps = call.attributes.number("eps");
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    const T* scale = call.has(1) ? input_data<T>(call, 1) : nullptr;
    const T* shift = call.has(2) ? input_data<T>(call, 2) : nullptr;
    for_rows({plan.rows, plan.n, 1}, [&](std::int64_t r, std::int64_t start) {
      auto& row = scratch_row<V>(plan.n);
      load_row(input_data<T>(call, 0) + start, 1, row);
      const RowStatistics<V> statistics(row, info.rms(), eps);
      row_math::functions<V>().move(row.data(), plan.n, -statistics.mean, statistics.inverse);
      if (scale != nullptr)
        row_math::functions<V>().multiply(row.data(), row_of<V, 1>(plan, scale, r), plan.n);
      if (shift != nullptr)
        row_math::functions<V>().add(row.data(), row_of<V, 1>(plan, shift, r), plan.n);
      store_row(row, output_data<T>(call, 0) + start, 1);
    });
  });
}

template <class T>
class HostBackward {
 public:
  using V = arithmetic_t<T>;
  HostBackward(const NormInfo& info, const OpCall& call)
      : info_(info),
        call_(call),
        plan_(plan_of(info.kind, call.inputs[0].shape(), call.attributes)),
        scale_(call.has(1) ? input_data<T>(call, 1) : nullptr),
        statistics_(static_cast<std::size_t>(plan_.rows)) {}

  void run() {
    for_rows({plan_.rows, plan_.n, 1},
             [this](std::int64_t row, std::int64_t start) { dx_of(row, start); });
    if (!wants_parameters(call_.attributes)) return;
    const auto work = std::max<std::int64_t>(plan_.batch() * plan_.span, 1);
    parallel_for(plan_.channels(), std::max<std::int64_t>((1 << 14) / work, 16),
                 [this](std::int64_t begin, std::int64_t end) { parameters_of(begin, end); });
  }

 private:
  void dx_of(std::int64_t r, std::int64_t start) {
    auto &x = scratch_row<V>(plan_.n), &g = scratch_row<V, 1>(plan_.n);
    load_row(input_data<T>(call_, 0) + start, 1, x);
    load_row(input_data<T>(call_, 2) + start, 1, g);
    const RowStatistics<V> s(x, info_.rms(), call_.attributes.number("eps"));
    statistics_[static_cast<std::size_t>(r)] = s;
    if (scale_ != nullptr)
      row_math::functions<V>().multiply(g.data(), row_of<V, 2>(plan_, scale_, r), plan_.n);
    const auto n = static_cast<V>(plan_.n);
    const V share = info_.rms() ? V(0) : row_math::functions<V>().sum(g.data(), plan_.n) / n;
    const V slope =
        row_math::functions<V>().moment(x.data(), plan_.n, s.mean, g.data()) * s.inverse / n;
    row_math::functions<V>().norm_gradient(x.data(), g.data(), plan_.n, s.mean, s.inverse, share,
                                           slope);
    store_row(x, output_data<T>(call_, 0) + start, 1);
  }

  void parameters_of(std::int64_t begin, std::int64_t end) {
    std::vector<V> dscale(static_cast<std::size_t>(end - begin)), dshift(dscale.size());
    const auto per_group = plan_.n / plan_.span;
    for (std::int64_t b = 0; b < plan_.batch(); ++b)
      for (auto group = begin / per_group; group * per_group < end; ++group) {
        const auto first = std::max(begin, group * per_group);
        const auto last = std::min(end, (group + 1) * per_group);
        add_row(b * plan_.groups + group, first - group * per_group, last - first,
                dscale.data() + (first - begin), dshift.data() + (first - begin));
      }
    store_row(dscale, output_data<T>(call_, 1) + begin, 1);
    store_row(dshift, output_data<T>(call_, 2) + begin, 1);
  }

  // Adds what `count` channels of a row contribute.
  void add_row(std::int64_t row, std::int64_t channel, std::int64_t count, V* dscale, V* dshift) {
    const auto start = row * plan_.n + channel * plan_.span;
    const auto& s = statistics_[static_cast<std::size_t>(row)];
    auto &x = scratch_row<V>(count * plan_.span), &dy = scratch_row<V, 1>(count * plan_.span);
    load_row(input_data<T>(call_, 0) + start, 1, x);
    load_row(input_data<T>(call_, 2) + start, 1, dy);
    if (plan_.span == 1)
      return row_math::functions<V>().add_parameters(dscale, dshift, x.data(), dy.data(), count,
                                                     s.mean, s.inverse);
    for (std::int64_t c = 0; c < count; ++c) {
      const V *from = x.data() + c * plan_.span, *g = dy.data() + c * plan_.span;
      dscale[c] += row_math::functions<V>().moment(from, plan_.span, s.mean, g) * s.inverse;
      dshift[c] += row_math::functions<V>().sum(g, plan_.span);
    }
  }

  const NormInfo& info_;
  const OpCall& call_;
  const NormPlan plan_;
  const T* scale_;
  std::vector<RowStatistics<V>> statistics_;
};

void host_backward(const NormInfo& info, const OpCall& call) {
  visit_floating(call.dtype(), [&]<class T>(T) {
    if (call.inputs[0].numel() > 0) return HostBackward<T>(info, call).run();
    for (std::size_t i = 1; i < call.outputs.size(); ++i)
      std::fill_n(output_data<T>(call, i), call.outputs[i].numel(), T{});
  });
}

// ---- reference

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const double* row, std::int64_t n, bool rms) {
  Moments m;
  if (!rms)
    for (std::int64_t i = 0; i < n; ++i) m.mean += row[i] / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i)
    m.variance += (row[i] - m.mean) * (row[i] - m.mean) / static_cast<double>(n);
  return m;
}

void reference(const NormInfo& info, RefCall& call, bool backward) {
  const auto plan = plan_of(info.kind, call.inputs[0].shape, call.attributes);
  const double eps = call.attributes.number("eps");
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    const double* x = call.inputs[0].values.data() + row * plan.n;
    double* out = call.outputs[0].values.data() + row * plan.n;
    const auto m = moments_of(x, plan.n, info.rms());
    const double deviation = std::sqrt(m.variance + eps);
    const auto channel = [&](std::int64_t i) {
      return static_cast<std::size_t>(plan.channel(row, i));
    };
    const auto scale = [&](std::int64_t i) {
      return call.has(1) ? call.inputs[1].values[channel(i)] : 1.0;
    };
    if (!backward) {
      for (std::int64_t i = 0; i < plan.n; ++i)
        out[i] = (x[i] - m.mean) / deviation * scale(i) +
                 (call.has(2) ? call.inputs[2].values[channel(i)] : 0.0);
      continue;
    }
    const double* dy = call.inputs[2].values.data() + row * plan.n;
    double mean_g = 0, mean_gx = 0;
    for (std::int64_t i = 0; i < plan.n; ++i) {
      const double normal = (x[i] - m.mean) / deviation;
      mean_g += dy[i] * scale(i) / static_cast<double>(plan.n);
      mean_gx += dy[i] * scale(i) * normal / static_cast<double>(plan.n);
      if (call.outputs.size() == 1) continue;
      call.outputs[1].values[channel(i)] += dy[i] * normal;
      call.outputs[2].values[channel(i)] += dy[i];
    }
    if (info.rms()) mean_g = 0;
    for (std::int64_t i = 0; i < plan.n; ++i)
      out[i] = (dy[i] * scale(i) - mean_g - (x[i] - m.mean) / deviation * mean_gx) / deviation;
  }
}

// ---- samples

OpSample sample_of(const NormInfo& info, const Shape& shape, std::int64_t setting, bool with_scale,
                   bool with_shift, bool backward, double eps = 1e-5) {
  const Attributes attributes{{info.kind == Kind::group ? "groups" : "axes", setting},
                              {"eps", eps}};
  const auto parameters = parameter_shape(info.kind, shape, attributes);
  SampleInput x{shape, Fill::uniform, -2, 3}, scale{parameters, Fill::uniform, 0.5, 1.5},
      other{backward ? shape : parameters};
  scale.present = with_scale;
  other.present = backward || with_shift;
  auto id = fmt::format("{}_{}{}{}", join(shape.sizes(), "x"), setting,
                        with_scale ? "" : "_noscale", with_shift ? "" : "_noshift");
  OpSample sample{std::move(id), {x, scale}, attributes};
  if (!info.rms() || backward) sample.inputs.push_back(other);
  return sample;
}

// A variance that is small against eps or one element per row makes differences meaningless.
std::vector<OpSample> samples(const NormInfo& info, bool backward) {
  std::vector<OpSample> all;
  const auto add = [&](const Shape& shape, std::int64_t setting, bool scale = true,
                       bool shift = true) {
    all.push_back(sample_of(info, shape, setting, scale, shift, backward));
  };
  if (info.kind == Kind::group) {
    for (const std::int64_t groups : {1, 2, 3, 6}) add({2, 6, 5}, groups);
    for (const std::int64_t s : {3, 5, 7, 15, 16, 17, 31, 33, 65, 130}) add({3, 4, s}, 2);
    add({2, 4, 3, 5}, 2), add({2, 4, 3, 5}, 4, false, false), add({2, 4, 3, 5}, 1, true, false);
    add({2, 4, 2, 3, 2}, 2, false, true), add({5, 12}, 3), add({1, 2, 700}, 1), add({0, 4, 3}, 2);
    add({2, 4, 0}, 2), add({70, 6, 2}, 3), add({1, 1, 7}, 1), add({2, 12, 4}, 4);
    add({2, 12, 4}, 6, false, false), add({2, 17, 3}, 17), add({3, 2, 16, 17}, 1);
    add({1, 8, 1, 9}, 4), add({5, 10}, 2, true, false), add({33, 3, 4}, 1, false, true);
    add({0, 2}, 1);
    return all;
  }
  for (const std::int64_t n : {2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 64, 65, 129, 257, 1031})
    add({3, n}, 1);
  add({5, 13}, 1, false, false), add({5, 13}, 1, true, false), add({5, 13}, 1, false, true);
  add({2, 3, 4}, 2), add({2, 3, 4}, 3), add({2, 3, 4, 5}, 1), add({9}, 1), add({0, 7}, 1);
  add({3, 0}, 1), add({300, 5}, 1), add({70, 40}, 1), add({1, 3}, 1);
  add({17, 15}, 1), add({33, 5}, 1), add({2, 3, 4, 5}, 2), add({2, 2, 2, 2, 3}, 3);
  add({1, 1, 1, 7}, 1), add({2, 3, 4}, 2, false, false), add({0, 3, 4}, 2);
  return all;
}

std::vector<OpSample> all_samples(const NormInfo& info, bool backward) {
  auto all = samples(info, backward);
  const bool group = info.kind == Kind::group;
  if (backward) {
    for (const bool scale : {true, false})
      for (const std::int64_t n : {5, 16, 49, 301}) {
        auto sample = sample_of(info, group ? Shape{37, 2, n} : Shape{37, n}, 1, scale, true, true);
        sample.id += "_dx";
        sample.attributes.set("parameters", false);
        all.push_back(std::move(sample));
      }
    return all;
  }
  auto far =
      sample_of(info, group ? Shape{2, 4, 9} : Shape{3, 65}, group ? 2 : 1, true, true, false);
  far.id = "far_from_zero";
  far.inputs[0].low = 9, far.inputs[0].high = 12;
  far.dtypes = {DType::float32};
  all.push_back(far);
  auto large_eps =
      sample_of(info, group ? Shape{2, 4, 9} : Shape{3, 19}, group ? 2 : 1, true, true, false, 0.5);
  large_eps.id = "eps_half";
  all.push_back(large_eps);
  SampleInput rows{group ? Shape{3, 4} : Shape{3, 4}, Fill::values};
  rows.values = {1, NAN, 2, 3, INFINITY, 1, 2, 3, -1, 0, 1, 2};
  auto special = sample_of(info, rows.shape, 1, false, false, false);
  special.id = "special_rows";
  special.inputs[0] = rows;
  special.gradient = false;
  all.push_back(special);
  return all;
}

OpDef make(const NormInfo& info) {
  OpDef op;
  op.name = info.name;
  op.summary = info.summary;
  op.dtypes = kFloats;
  op.infer = [&info](const OpSpec& spec) { return infer(info, spec); };
  op.reference = [&info](RefCall& call) { reference(info, call, false); };
  op.host = [&info](const OpCall& call) { host(info, call); };
  set_row_variants(
      op, info.item, info.group_variant, kPath,
      [&info](const OpCall& call) {
        const auto plan = plan_of(info.kind, call.inputs[0].shape(), call.attributes);
        return RowPlan{plan.rows, plan.n, 1};
      },
      [&info](const OpCall& call, Team team) { run(info, call, team); });
  op.backward = [&info](const OpGradient& g) -> std::vector<Tensor> {
    std::vector<Tensor> result(g.inputs.size());
    if (!g.dy()) return result;
    auto attributes = g.attributes;
    if (!g.wants(1) && !g.wants(2)) attributes.set("parameters", false);
    auto grads = call_op(find_op(info.backward), {g.inputs[0], g.inputs[1], g.dy()}, attributes);
    for (std::size_t i = 0; i < result.size(); ++i)
      if (g.wants(i)) result[i] = grads[i];
    return result;
  };
  op.saves = SavedTensors::always(~0u, 0);
  op.samples = [&info] { return all_samples(info, false); };
  op.tolerance = [](const OpSpec&) { return Tolerance{8, 24}; };
  op.tolerance_reason = "statistics of elements up to 3, rounded a few times; then four roundings";
  return op;
}

OpDef make_backward(const NormInfo& info) {
  OpDef op;
  op.name = info.backward;
  op.summary = fmt::format("the gradients of {}: dx, dscale, dshift", info.name);
  op.dtypes = kFloats;
  op.infer = [&info](const OpSpec& spec) { return infer_backward(info, spec); };
  op.reference = [&info](RefCall& call) { reference(info, call, true); };
  op.host = [&info](const OpCall& call) { host_backward(info, call); };
  set_row_variants(
      op, info.backward_item, info.backward_group, kPath,
      [&info](const OpCall& call) {
        const auto plan = plan_of(info.kind, call.inputs[0].shape(), call.attributes);
        return RowPlan{plan.rows, plan.n, 1};
      },
      [&info](const OpCall& call, Team team) { run_backward(info, call, team); });
  op.samples = [&info] { return all_samples(info, true); };
  op.tolerance = [](const OpSpec& spec) {
    return Tolerance{8, 64 + static_cast<double>(spec.shape(0).numel()) / 8};
  };
  op.tolerance_reason = "sums over rows and over the batch; small deviations magnify dx";
  return op;
}

}  // namespace

std::vector<OpDef> row_norm_ops() {
  std::vector<OpDef> ops;
  for (const auto& info : kInfos) {
    ops.push_back(make(info));
    ops.push_back(make_backward(info));
  }
  return ops;
}

}  // namespace netcl
