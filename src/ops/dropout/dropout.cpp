// dropout: the mask is a function of seed and position, so nothing is stored for the gradient and
// every device drops the same elements. One multiplication per element, because its rounding is the
// same everywhere, which that of a division is not.
#include <cmath>

#include "base/check.h"
#include "base/parallel.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/kernels.h"
#include "ops/vector_lanes.h"
#include "tensor/convert.h"
#include "tensor/kernels.h"
#include "tensor/random.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/dropout/dropout.cl";

// Words below it drop their element. 2^32 for p = 1: every word does.
std::uint64_t threshold_of(double p) { return static_cast<std::uint64_t>(std::ceil(p * 0x1p32)); }
// Of p = 1 never used, but infinity times 0 must not come up.
double scale_of(double p) { return p == 1 ? 0 : 1 / (1 - p); }

std::uint64_t seed_of(const Attributes& attributes) {
  return static_cast<std::uint64_t>(attributes.integer("seed"));
}

// Words 4 * block ... 4 * block + 3 of a seed's stream, as Tensor::random uses them.
std::array<std::uint32_t, 4> words_of(std::uint64_t seed, std::uint64_t block) {
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

std::vector<TensorSpec> infer(const OpSpec& spec) {
  const auto p = spec.attributes.number("p");
  check<ArgumentError>(p >= 0 && p <= 1, "[dropout] the probability must be in [0, 1]: {}", p);
  check<DtypeError>(is_floating(spec.dtype()) && spec.dtype() != DType::bfloat16,
                    "[dropout] the dtype must be float16, float32 or float64: {}",
                    name_of(spec.dtype()));
  return {{spec.shape(0), spec.dtype()}};
}

void reference(RefCall& call) {
  const auto p = call.attributes.number("p");
  for (std::size_t i = 0; i < call.inputs[0].values.size(); ++i) {
    const auto word = words_of(seed_of(call.attributes), i / 4)[i % 4];
    const bool dropped = static_cast<double>(word) * 0x1p-32 < p;
    call.outputs[0].values[i] = dropped ? 0 : call.inputs[0].values[i] / (1 - p);
  }
}

void host(const OpCall& call) {
  const auto p = call.attributes.number("p");
  const auto seed = seed_of(call.attributes), threshold = threshold_of(p);
  const auto n = call.outputs[0].numel();
  visit_dtype(call.dtype(), [&]<class T>(T) {
    using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto scale = static_cast<V>(scale_of(p));
    const auto* x = static_cast<const T*>(call.inputs[0].host_data());
    auto* y = static_cast<T*>(call.outputs[0].host_data());
    parallel_for((n + 3) / 4, 2048, [&](std::int64_t begin, std::int64_t end) {
      for (auto block = begin; block < end; ++block) {
        const auto words = words_of(seed, static_cast<std::uint64_t>(block));
        for (auto i = 4 * block; i < std::min(4 * block + 4, n); ++i) {
          const bool kept = words[static_cast<std::size_t>(i % 4)] >= threshold;
          y[i] = convert_element<T>(kept ? convert_element<V>(x[i]) * scale : V(0));
        }
      }
    });
  });
}

void enqueue(const OpCall& call, const VariantRun&) {
  const auto dtype = call.dtype();
  const auto kernel =
      op_kernel(call.queue, KernelKey(kPath, "dropout", {static_cast<std::int64_t>(dtype)}),
                [&] { return t_and_acc(dtype); });
  const auto p = call.attributes.number("p");
  const auto n = call.outputs[0].numel();
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, 64));
  OpArgs()
      .tensor(call.inputs[0])
      .tensor(call.outputs[0])
      .value(static_cast<std::uint64_t>(n))
      .value(seed_of(call.attributes))
      .value(threshold_of(p))
      .number(scale_of(p), dtype)
      .enqueue(call.queue, kernel, WorkSize(rounded_up((n + 3) / 4, local)), WorkSize(local));
}

// ---- on CPUs

constexpr const char* kVectorsPath = "ops/dropout/vectors.cl";

std::string needs_cpu(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "it is for CPUs: GPUs drop blocks of four elements";
  return call.attributes.number("p") == 1 ? "every word drops its element" : "";
}

std::string vectors_prologue(DType dtype, std::int64_t lanes, std::int64_t blocks) {
  auto text = t_and_acc(dtype) + vector_macros(dtype, lanes) + define("BLOCKS", blocks);
  text += dtype == DType::float16
              ? fmt::format("#define STOREV(v, p) store_halves{}(v, p)\n", lanes)
              : fmt::format("#define STOREV(v, p) vstore{}(v, 0, p)\n", lanes);
  return text + (size_of(dtype) == 8
                     ? fmt::format("#define KEPT(words) convert_long{}((words) >= least)\n", lanes)
                     : std::string("#define KEPT(words) ((words) >= least)\n"));
}

void enqueue_vectors(const OpCall& call, const VariantRun&) {
  const auto& profile = device_profile(call.queue);
  const auto dtype = call.dtype();
  const auto lanes = vector_lanes(
      profile, 64 / static_cast<std::int64_t>(size_of(compute_dtype(dtype))), compute_dtype(dtype));
  const auto blocks = vector_lanes(profile, 8, DType::int64);
  const auto kernel = op_kernel(
      call.queue,
      KernelKey(kVectorsPath, "dropout_vectors", {static_cast<std::int64_t>(dtype), lanes, blocks}),
      [&] { return vectors_prologue(dtype, lanes, blocks); });
  const auto p = call.attributes.number("p");
  const auto n = call.outputs[0].numel();
  const auto part = cpu_part(n, profile);
  OpArgs()
      .tensor(call.inputs[0])
      .tensor(call.outputs[0])
      .value(static_cast<std::uint64_t>(n))
      .value(seed_of(call.attributes))
      .value(static_cast<std::uint64_t>(part))
      .value(static_cast<std::uint32_t>(threshold_of(p)))
      .number(scale_of(p), dtype)
      .enqueue(call.queue, kernel, WorkSize(std::max<std::size_t>(ceil_div(n, part), 1)),
               WorkSize(1));
}

std::vector<OpSample> samples() {
  std::vector<OpSample> all;
  const auto add = [&](const std::vector<std::int64_t>& shape, double p, std::int64_t seed) {
    all.push_back(
        {fmt::format("{}_p{}_seed{}", shape.empty() ? "scalar" : join(shape, "x"), p, seed),
         {{Shape(shape), Fill::uniform, -2, 2}},
         {{"p", p}, {"seed", seed}}});
  };
  for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 33, 63, 64, 65, 255, 257, 1031})
    add({n}, 0.5, n);
  add({40'011}, 0.5, 9);  // several parts of the work
  for (const double p : {0.0, 0.01, 0.1, 0.25, 0.75, 0.9, 1.0}) add({101}, p, 7);
  add({}, 0.5, 3);
  add({3, 5, 7}, 0.3, -1);
  add({2, 0, 3}, 0.3, 1);
  add({97}, 0.5, INT64_MIN);
  add({97}, 0.5, std::int64_t{1} << 32);
  all.push_back({"special",
                 {{{203}, Fill::special}},
                 {{"p", 0.5}, {"seed", std::int64_t{5}}},
                 false,
                 kFloats});
  return all;
}

}  // namespace

std::vector<OpDef> ops_of_dropout() {
  OpDef op;
  op.name = "dropout";
  op.summary = "zero with probability p, else x / (1 - p)";
  op.dtypes = kFloats;
  op.infer = infer;
  op.reference = reference;
  op.host = host;
  op.variants = {{.name = "dropout.vectors",
                  .kernel = "",
                  .path = kVectorsPath,
                  .declines = needs_cpu,
                  .run = enqueue_vectors},
                 {.name = "dropout.blocks", .kernel = "", .path = kPath, .run = enqueue}};
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    return {apply("dropout", {g.dy()}, g.attributes)};
  };
  op.saves = SavedTensors::always(0, 0);
  op.samples = samples;
  op.tolerance = [](const OpSpec&) { return Tolerance{2, 0}; };
  op.tolerance_reason = "the factor 1 / (1 - p) and the product are rounded";
  op.may_be_in_place = true;
  return {op};
}

namespace ops {

Tensor dropout(const Tensor& x, double p, std::uint64_t seed) {
  return apply("dropout", {x}, {{"p", p}, {"seed", static_cast<std::int64_t>(seed)}});
}

}  // namespace ops
}  // namespace netcl
