// max and average pooling, with windows of one size or adaptive ones, and their gradients.
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "ops/dispatch.h"
#include "ops/kernels.h"
#include "ops/pool/kernels.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/pool/pool.cl";
constexpr const char* kPlanesPath = "ops/pool/planes.cl";
constexpr std::int64_t kLargestWindow = 64;     // pixels that a kernel is written out for
constexpr std::int64_t kBlockElements = 16384;  // of the planes of a work-item

std::string op_name(bool max, bool adaptive) {
  return fmt::format("{}{}_pool2d", adaptive ? "adaptive_" : "", max ? "max" : "avg");
}

void check_dtype(const OpSpec& spec) {
  check<DtypeError>(is_floating(spec.dtype()) && spec.dtype() != DType::bfloat16,
                    "[{}] the dtype must be float16, float32 or float64: {}", spec.op.name,
                    name_of(spec.dtype()));
}

std::vector<TensorSpec> infer(const OpSpec& spec, bool max) {
  check_dtype(spec);
  const auto g = pool_geometry(spec.op.name.c_str(), spec.shape(0), spec.attributes);
  const Shape shape{spec.shape(0)[0], spec.shape(0)[1], g.rows.out, g.columns.out};
  if (!max) return {{shape, spec.dtype()}};
  return {{shape, spec.dtype()}, {shape, DType::int32}};
}

std::vector<TensorSpec> infer_backward(const OpSpec& spec, bool max) {
  check_dtype(spec);
  const auto& dy = spec.shape(0);
  const auto g = pool_backward_geometry(spec.op.name.c_str(), dy, spec.attributes);
  if (max) {
    check<DtypeError>(spec.dtype(1) == DType::int32, "[{}] the positions must be int32: {}",
                      spec.op.name, name_of(spec.dtype(1)));
    if (!(spec.shape(1) == dy))
      fail<ShapeError>("[{}] there must be a position per gradient {}: {}", spec.op.name,
                       dy.to_string(), spec.shape(1).to_string());
  }
  return {{Shape{dy[0], dy[1], g.rows.in, g.columns.in}, spec.dtype()}};
}

// ---- reference: by the definition, every window in the padded image

// Calls f(flat output, flat input, position in the plane) for every pixel of every window.
template <class F>
void for_window_pixels(const PoolGeometry& g, F&& f) {
  const auto inside = [](const PoolAxis& axis, std::int64_t o, std::int64_t i) {
    if (!axis.adaptive())
      return i >= o * axis.stride - axis.padding &&
             i < o * axis.stride - axis.padding + axis.window;
    const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
    return static_cast<double>(i) >= std::floor(static_cast<double>(o) * in / out) &&
           static_cast<double>(i) < std::ceil(static_cast<double>(o + 1) * in / out);
  };
  std::size_t output = 0;
  for (std::int64_t plane = 0; plane < g.planes; ++plane)
    for (std::int64_t oh = 0; oh < g.rows.out; ++oh)
      for (std::int64_t ow = 0; ow < g.columns.out; ++ow, ++output)
        for (std::int64_t h = 0; h < g.rows.in; ++h)
          for (std::int64_t w = 0; w < g.columns.in; ++w) {
            const auto at = h * g.columns.in + w;
            if (inside(g.rows, oh, h) && inside(g.columns, ow, w))
              f(output, static_cast<std::size_t>(plane * g.rows.in * g.columns.in + at), at);
          }
}

// How many pixels each output averages, padding included or not.
std::vector<double> window_sizes(const PoolGeometry& g, std::size_t outputs) {
  std::vector<double> sizes(outputs, 0);
  for_window_pixels(g, [&](std::size_t output, std::size_t, std::int64_t) { ++sizes[output]; });
  if (!g.rows.adaptive() && g.count_padding)
    std::fill(sizes.begin(), sizes.end(), static_cast<double>(g.rows.window * g.columns.window));
  return sizes;
}

void reference_max(RefCall& call, const PoolGeometry& g) {
  auto &y = call.outputs[0].values, &indices = call.outputs[1].values;
  std::fill(indices.begin(), indices.end(), -1);
  for_window_pixels(g, [&](std::size_t output, std::size_t input, std::int64_t at) {
    const auto value = call.inputs[0].values[input];
    if (indices[output] >= 0 && !(value > y[output]) && !std::isnan(value)) return;
    y[output] = value;
    indices[output] = static_cast<double>(at);
  });
}

void reference_avg(RefCall& call, const PoolGeometry& g) {
  auto& y = call.outputs[0].values;
  for_window_pixels(g, [&](std::size_t output, std::size_t input, std::int64_t) {
    y[output] += call.inputs[0].values[input];
  });
  const auto sizes = window_sizes(g, y.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] /= sizes[i];
}

void reference_backward(RefCall& call, const PoolGeometry& g, bool max) {
  const auto& dy = call.inputs[0].values;
  auto& dx = call.outputs[0].values;
  if (max) {
    const auto pixels = static_cast<std::size_t>(g.rows.in * g.columns.in);
    const auto outputs = static_cast<std::size_t>(g.rows.out * g.columns.out);
    for (std::size_t o = 0; o < dy.size(); ++o)
      dx[o / outputs * pixels + static_cast<std::size_t>(call.inputs[1].values[o])] += dy[o];
    return;
  }
  const auto sizes = window_sizes(g, dy.size());
  for_window_pixels(g, [&](std::size_t output, std::size_t input, std::int64_t) {
    dx[input] += dy[output] / sizes[output];
  });
}

// ---- OpenCL

void enqueue(const OpCall& call, const PoolGeometry& g, bool max, bool is_backward, bool narrow) {
  const auto dtype = call.dtype();
  const bool adaptive = g.rows.adaptive();
  // Only averages ask; a key that differs without need compiles twice.
  const bool count_padding = !max && !adaptive && g.count_padding;
  const char* names[] = {"avg_pool", "max_pool", "avg_pool_backward", "max_pool_backward"};
  const auto kernel = op_kernel(
      call.queue,
      KernelKey(kPath, names[(is_backward ? 2 : 0) + (max ? 1 : 0)],
                {static_cast<std::int64_t>(dtype), adaptive, count_padding, narrow}),
      [&] {
        return t_and_acc(dtype) + define("MAX", max) + define("ADAPTIVE", adaptive) +
               define("COUNT_PADDING", count_padding) + define("BACKWARD", is_backward) +
               define("POS", narrow ? "int" : "long") + define("POS2", narrow ? "int2" : "long2") +
               define("UPOS", narrow ? "uint" : "ulong");
      });
  const auto n = call.outputs[0].numel();
  OpArgs args;
  for (const auto& input : call.inputs) args.tensor(input);
  for (const auto& output : call.outputs) args.tensor(output);
  args.value(static_cast<std::uint64_t>(n));
  const KernelPairs<std::int32_t> ints(g);
  const KernelPairs<std::int64_t> longs(g);
  narrow ? ints.add_to(args, {0, 1, 2, 3, 4}) : longs.add_to(args, {0, 1, 2, 3, 4});
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, 64));
  args.enqueue(call.queue, kernel, WorkSize(rounded_up(n, local)), WorkSize(local));
}

// ---- CPUs: a work-item per some planes

std::string needs_planes(const OpCall& call, const PoolGeometry& g, bool max, bool is_backward,
                         const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "planes are for CPUs";
  if (is_backward && !max) return "averages have gradients by rows";
  if (!is_backward && g.rows.adaptive()) return "the windows have different sizes";
  if (!is_backward && g.rows.window * g.columns.window > kLargestWindow)
    return "the window is large";
  if (!fits_int(g)) return "positions need 64 bits";
  if (is_backward && compute_dtype(call.dtype()) != call.dtype())
    return "sums of a gradient are rounded once";
  return g.planes >= static_cast<std::int64_t>(profile.compute_units)
             ? ""
             : "there are fewer planes than cores";
}

// How many neighbouring windows a kernel takes at a time: 0 where it takes one.
std::int64_t lanes_of(const OpCall& call, const PoolGeometry& g, bool is_backward) {
  if (call.dtype() != DType::float32 || is_backward || g.columns.stride > 2) return 0;
  auto lanes = unit_lanes(device_profile(call.queue), DType::float32);
  while (lanes > g.columns.out) lanes /= 2;
  return lanes >= 2 ? lanes : 0;
}

std::string lane_macros(std::int64_t lanes) {
  if (lanes == 0) return {};
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(lanes));
  std::iota(numbers.begin(), numbers.end(), 0);
  return vector_macros(DType::float32, lanes) + define("LANEV", fmt::format("int{}", lanes)) +
         define("LANES", fmt::format("((int{})({}))", lanes, join(numbers, ", ")));
}

void enqueue_planes(const OpCall& call, const PoolGeometry& g, bool max, bool is_backward) {
  const auto dtype = call.dtype();
  const bool count_padding = !max && g.count_padding;
  const char* name = is_backward ? "max_pool_backward_planes"
                     : max       ? "max_pool_planes"
                                 : "avg_pool_planes";
  const auto lanes = lanes_of(call, g, is_backward);
  const auto kernel =
      op_kernel(call.queue,
                KernelKey(kPlanesPath, name,
                          {static_cast<std::int64_t>(dtype), count_padding, g.rows.window,
                           g.columns.window, g.rows.stride, g.columns.stride, lanes}),
                [&] {
                  return t_and_acc(dtype) + lane_macros(lanes) + define("MAX", max) +
                         define("COUNT_PADDING", count_padding) + define("BACKWARD", is_backward) +
                         define("KH", g.rows.window) + define("KW", g.columns.window) +
                         define("SH", g.rows.stride) + define("SW", g.columns.stride);
                });
  OpArgs args;
  for (const auto& input : call.inputs) args.tensor(input);
  for (const auto& output : call.outputs) args.tensor(output);
  const KernelPairs<std::int32_t> pairs(g);
  args.value(g.planes);
  pairs.add_to(args, {0, 1, 4});
  const std::int64_t items = 8 * device_profile(call.queue).compute_units;
  const auto pixels = std::max<std::int64_t>(g.rows.in * g.columns.in, 1);
  const auto block = std::clamp<std::int64_t>(g.planes / items, 1,
                                              std::max<std::int64_t>(kBlockElements / pixels, 1));
  args.value(block).enqueue(call.queue, kernel, std::max<std::size_t>(ceil_div(g.planes, block), 1),
                            1);
}

// The attributes of the gradient: those of the op, and the size of its image.
std::vector<Tensor> backward(const OpGradient& g, const std::string& name, bool max) {
  if (!g.wants(0) || !g.dy()) return {Tensor()};
  auto attributes = g.attributes;
  const auto& shape = g.inputs[0].shape();
  attributes.set("image", std::vector<std::int64_t>{shape[2], shape[3]});
  std::vector<Tensor> inputs = {g.dy()};
  if (max) inputs.push_back(g.outputs[1]);
  return {apply(name + "_backward", std::move(inputs), attributes)};
}

OpDef make(const std::string& name, bool max, bool is_backward, GeometryOf geometry) {
  OpDef op;
  op.name = name;
  op.dtypes = kFloats;
  const auto geometry_of = [=](const OpCall& call) {
    return geometry(name.c_str(), call.inputs[0].shape(), call.attributes);
  };
  op.host = [=](const OpCall& call) { pool_host(call, geometry_of(call), max, is_backward); };
  OpVariant planes{is_backward ? "pool_backward.planes" : "pool.planes", "", kPlanesPath};
  planes.declines = [=](const OpCall& call, const ExtendedDeviceProfile& profile) {
    return needs_planes(call, geometry_of(call), max, is_backward, profile);
  };
  planes.run = [=](const OpCall& call, const VariantRun&) {
    enqueue_planes(call, geometry_of(call), max, is_backward);
  };
  OpVariant narrow{is_backward ? "pool_backward.per_pixel" : "pool.per_element", "", kPath};
  narrow.declines = [=](const OpCall& call, const ExtendedDeviceProfile&) {
    return fits_int(geometry_of(call)) ? "" : "positions need 64 bits";
  };
  narrow.run = [=](const OpCall& call, const VariantRun&) {
    enqueue(call, geometry_of(call), max, is_backward, true);
  };
  OpVariant wide{is_backward ? "pool_backward.wide" : "pool.wide", "", kPath};
  wide.run = [=](const OpCall& call, const VariantRun&) {
    enqueue(call, geometry_of(call), max, is_backward, false);
  };
  op.variants = {planes, pool_rows_variant(name, max, is_backward, geometry), narrow, wide};
  return op;
}

}  // namespace

OpDef pool_op(bool max, bool adaptive) {
  const auto name = op_name(max, adaptive);
  auto op = make(name, max, false, pool_geometry);
  op.summary = fmt::format("the {} of {} windows{}", max ? "largest" : "average",
                           adaptive ? "adaptive" : "sliding",
                           max ? ", and where it is (int32, in its plane)" : "");
  op.infer = [=](const OpSpec& spec) { return infer(spec, max); };
  op.reference = [=](RefCall& call) {
    const auto g = pool_geometry(name.c_str(), call.inputs[0].shape, call.attributes);
    max ? reference_max(call, g) : reference_avg(call, g);
  };
  op.backward = [=](const OpGradient& g) { return backward(g, name, max); };
  op.saves = SavedTensors::always(0, max ? 2 : 0);
  op.samples = [=] { return pool_samples(max, adaptive); };
  op.tolerance = [=](const OpSpec& spec) {
    if (max) return Tolerance{0, 0};
    const auto g = pool_geometry(name.c_str(), spec.shape(0), spec.attributes);
    return Tolerance{4, 0.5 * static_cast<double>((g.rows.end(0) + 1) * (g.columns.end(0) + 1))};
  };
  op.tolerance_reason = max ? "nothing is computed" : "a sum over the window and a division";
  return op;
}

OpDef pool_backward_op(bool max, bool adaptive) {
  const auto name = op_name(max, adaptive) + "_backward";
  auto op = make(name, max, true, pool_backward_geometry);
  op.summary = "the gradient of " + op_name(max, adaptive);
  op.infer = [=](const OpSpec& spec) { return infer_backward(spec, max); };
  op.reference = [=](RefCall& call) {
    reference_backward(
        call, pool_backward_geometry(name.c_str(), call.inputs[0].shape, call.attributes), max);
  };
  op.samples = [=] { return pool_backward_samples(max, adaptive); };
  op.tolerance = [=](const OpSpec& spec) {
    // As many terms as windows may cover one pixel.
    const auto g = pool_backward_geometry(name.c_str(), spec.shape(0), spec.attributes);
    const auto most = [](const PoolAxis& axis) {
      return axis.adaptive() ? axis.out / axis.in + 2 : axis.window / axis.stride + 1;
    };
    return Tolerance{4, 2.0 * static_cast<double>(most(g.rows) * most(g.columns))};
  };
  op.tolerance_reason = "a sum over the windows that cover a pixel, and divisions";
  return op;
}

std::vector<OpDef> ops_of_pool() {
  std::vector<OpDef> ops;
  for (const bool adaptive : {false, true})
    for (const bool max : {true, false}) {
      ops.push_back(pool_op(max, adaptive));
      ops.push_back(pool_backward_op(max, adaptive));
    }
  return ops;
}

}  // namespace netcl
