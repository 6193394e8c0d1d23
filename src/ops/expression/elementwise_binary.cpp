// elementwise_binary: an expression of the user over two tensors, as one kernel.
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/program.h"
#include "ops/expression/expression.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

constexpr std::int64_t kBlock = 256;  // elements; the stack of most expressions fits the L1 cache
constexpr std::int64_t kGrain = 1 << 14;

Expression expression_of(const Attributes& attributes) {
  return Expression::parse("elementwise_binary", attributes.text("expression"), {"v0", "v1"});
}

std::vector<TensorSpec> infer(const OpSpec& spec) {
  for (std::size_t i = 0; i < 2; ++i)
    check<DtypeError>(spec.dtype(i) == spec.dtype(0) && is_floating(spec.dtype(i)) &&
                          spec.dtype(i) != DType::bfloat16,
                      "[elementwise_binary] both tensors must be float16, float32 or float64: {} "
                      "and {}",
                      name_of(spec.dtype(0)), name_of(spec.dtype(1)));
  expression_of(spec.attributes);
  return {{broadcast_shapes(spec.op.name, spec.shape(0), spec.shape(1)), spec.dtype()}};
}

void reference(RefCall& call) {
  const auto expression = expression_of(call.attributes);
  auto& y = call.outputs[0];
  std::vector<Strides> strides;
  for (const auto& input : call.inputs)
    strides.push_back(broadcast_strides(input.shape, contiguous_strides(input.shape), y.shape));
  std::size_t at = 0;
  for_each_run(plan_broadcast(y.shape, strides), 0, y.shape.numel(),
               [&](const auto& offsets, const auto& steps, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i) {
                   const double values[] = {
                       call.inputs[0].values[static_cast<std::size_t>(offsets[0] + i * steps[0])],
                       call.inputs[1].values[static_cast<std::size_t>(offsets[1] + i * steps[1])]};
                   y.values[at++] = expression.evaluate(values);
                 }
               });
}

ElementArgs args_of(const OpCall& call) { return {call.inputs, {}, call.outputs, {}}; }

// ---- CPU backend: node by node over blocks

template <class T, class V>
void run_on_host(const OpCall& call, const Expression& expression) {
  const auto loops = element_loops(args_of(call));
  const auto* x = static_cast<const T*>(call.inputs[0].host_data());
  const auto* z = static_cast<const T*>(call.inputs[1].host_data());
  auto* y = static_cast<T*>(call.outputs[0].host_data());
  const auto load = [](const T* from, std::int64_t step, std::int64_t n, V* to) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<V>(from[i * step]);
  };
  parallel_for(call.outputs[0].numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<V> scratch((expression.scratch_blocks() + 2) * kBlock);
    V *first = scratch.data(), *second = first + kBlock;
    const V* variables[] = {first, second};
    for_each_run(loops, begin, end, [&](const auto& at, const auto& steps, std::int64_t count) {
      for (std::int64_t done = 0; done < count; done += kBlock) {
        const auto n = std::min(kBlock, count - done);
        load(x + at[0] + done * steps[0], steps[0], n, first);
        load(z + at[1] + done * steps[1], steps[1], n, second);
        const V* result = expression.evaluate_block(n, variables, second + kBlock);
        T* to = y + at[2] + done * steps[2];
        for (std::int64_t i = 0; i < n; ++i) to[i * steps[2]] = convert_element<T>(result[i]);
      }
    });
  });
}

void host(const OpCall& call) {
  const auto expression = expression_of(call.attributes);
  switch (call.dtype()) {
    case DType::float64:
      return run_on_host<double, double>(call, expression);
    case DType::float16:
      return run_on_host<float16_t, float>(call, expression);
    default:
      return run_on_host<float, float>(call, expression);
  }
}

// ---- OpenCL: an element program of its statements

// The memo's keys are numbers: the text enters as its whole SHA-256.
std::array<std::int64_t, 4> hash_of(const std::string& text) {
  const auto digest = Sha256().update(text).digest();
  std::array<std::int64_t, 4> words;
  std::memcpy(words.data(), digest.data(), sizeof words);
  return words;
}

KernelKey key_of(const ElementProgram& program, const std::string& text, int vec, int items) {
  std::int64_t operands = 0;
  for (const auto& list : {program.inputs, program.outputs})
    for (const auto& operand : list)
      operands = operands * 64 + static_cast<std::int64_t>(operand.dtype) * 4 +
                 static_cast<std::int64_t>(operand.access) + 1;
  const auto hash = hash_of(text);
  return {"elementwise_binary",
          "elementwise",
          {hash[0], hash[1], hash[2], hash[3], operands, static_cast<std::int64_t>(program.rank),
           program.wide, vec, items}};
}

void enqueue(const OpCall& call, std::int64_t local, int vec, int items) {
  const auto args = args_of(call);
  const auto loops = element_loops(args);
  ElementProgram program;
  program.compute = compute_dtype(call.dtype());
  describe_operands(args, loops, program);
  program.names = {"v0", "v1"};
  const auto kernel = generated_kernel(
      call.queue, key_of(program, call.attributes.text("expression"), vec, items), [&] {
        auto code = expression_of(call.attributes).to_opencl(program.compute);
        program.statements = std::move(code.statements);
        program.results = {std::move(code.result)};
        return render_elements(program, vec, items);
      });
  const auto per_item = static_cast<std::size_t>(vec > 1 ? vec : items);
  enqueue_elements(call.queue, kernel, program, args, loops, per_item, local);
}

std::string needs_linear(const OpCall& call, const ExtendedDeviceProfile&) {
  const auto args = args_of(call);
  ElementProgram program;
  describe_operands(args, element_loops(args), program);
  return program.rank == 0 ? "" : "an operand is broadcast or a strided view";
}

std::vector<OpVariant> variants() {
  OpVariant vectorized{"elementwise.vectorized", "ELEMENTWISE_VECTORIZED"};
  vectorized.declines = needs_linear;
  vectorized.run = [](const OpCall& call, const VariantRun& with) {
    const bool cpu = device_profile(call.queue).is_cpu;
    enqueue(call, with.config.local_size_1d, cpu ? 16 : 4, 1);
  };
  OpVariant scalar{"elementwise.scalar", "ELEMENTWISE_SCALAR"};
  scalar.run = [](const OpCall& call, const VariantRun& with) {
    enqueue(call, with.config.local_size_1d, 1, device_profile(call.queue).is_cpu ? 4 : 1);
  };
  return {vectorized, scalar};
}

// ---- samples

std::vector<OpSample> samples() {
  std::vector<OpSample> all;
  const auto add = [&](const std::string& id, const char* text,
                       std::vector<Shape> shapes = {{37}, {37}}) {
    OpSample sample{id, {}, {{"expression", std::string(text)}}, false};
    for (const auto& shape : shapes) sample.inputs.push_back({shape, Fill::uniform, 0.25, 2});
    all.push_back(std::move(sample));
  };
  const char* const plain = "MUL(ADD(v0, v1), 2.0f) - v0 / v1";
  add("0", plain, {{0}, {0}});
  add("1", plain, {{1}, {1}});
  add("1031", plain, {{1031}, {1031}});
  add("scalar", plain, {{}, {}});
  add("5x1+1x7", plain, {{5, 1}, {1, 7}});
  add("3x4x5+5", plain, {{3, 4, 5}, {5}});
  add("scalar+11x3", plain, {{}, {11, 3}});
  // More sizes of the same few kernels: an expression is a kernel to compile.
  for (const std::int64_t n : {2, 3, 15, 16, 17, 31, 33, 63, 65, 257})
    add(fmt::format("{}", n), plain, {{n}, {n}});
  add("3x5x7", plain, {{3, 5, 7}, {3, 5, 7}});
  add("3x0", plain, {{3, 0}, {3, 0}});
  add("17x1+1x31", plain, {{17, 1}, {1, 31}});
  add("2x3x16+16", plain, {{2, 3, 16}, {16}});
  add("scalar+7x2x3", plain, {{}, {7, 2, 3}});
  add("logic", "v0 > v1 && !(v0 < 1) || v1 == v0 ? RELU(v0 - v1) : -v1 * .5");
  add("functions", "MAX(exp(-v0), TANH(v1)) + MIN(log1p(v0), SQRT(v1)) * ABS(v0 - 1e0)");
  const std::vector<std::pair<const char*, const char*>> single = {
      {"trigonometry", "sin(v0) * cos(v1) + tan(v0 * .5) + atan2(v0, v1)"},
      {"powers", "pow(v0, v1) + rsqrt(v0) + cbrt(v1) + hypot(v0, v1)"},
      {"rounding", "floor(v0 * 4) + ceil(v1 * 4) - trunc(v0 * 3) + rint(v1 * 8) + round(v0 * 5)"},
      {"errors", "erf(v0) - erfc(v1) + expm1(v0) * clamp(v1, 0.5, 1)"},
      {"comparisons", "(v0 <= v1) + 2 * (v0 >= v1) + 4 * (v0 != v1) + 8 * (v0 > 1) + sign(v0 - 1)"},
      {"constant", "M_PI"},
      {"variable", "v1"}};
  for (const auto& [id, text] : single) {
    add(id, text);
    all.back().dtypes = {DType::float32};
  }
  add("special", "MAX(v0, v1) + MIN(v0, 1) + RELU(v1) + isnan(v0) + isinf(v1) + isfinite(v0)");
  for (auto& input : all.back().inputs) input = {{131}, Fill::special};
  // Neighbours of the largest number overflow or not, depending on the order of rounding.
  all.back().attributes =
      Attributes{{"expression", std::string("isnan(v0) ? MIN(v0, v1) : isinf(v1) ? MAX(v0, 1) : "
                                            "RELU(v1) == v1 ? fmax(v0, v1) : isfinite(v0) - 2")}};
  return all;
}

}  // namespace

std::vector<OpDef> ops_of_expression() {
  OpDef op;
  op.name = "elementwise_binary";
  op.summary = "an expression over the elements v0 and v1 of two tensors";
  op.dtypes = kFloats;
  op.infer = infer;
  op.reference = reference;
  op.host = host;
  op.variants = variants();
  op.problem = [](const OpCall& call) {
    return KernelProblem{"elementwise", {call.outputs[0].shape()}, call.outputs[0].dtype(), {}};
  };
  op.samples = samples;
  op.tolerance = [](const OpSpec& spec) {
    const auto ulps = expression_of(spec.attributes).ulps();
    return Tolerance{1 + ulps, 4 * ulps};
  };
  op.tolerance_reason = "what OpenCL C promises for each function, added up; values are about 1";
  op.takes_views = op.may_be_in_place = true;
  return {op};
}

namespace ops {

Tensor elementwise_binary(const Tensor& a, const Tensor& b, const std::string& expression) {
  check<ArgumentError>(a && b, "[elementwise_binary] no tensor may be empty (default-made)");
  const auto dtype = floating_of(promoted(a.dtype(), b.dtype()));
  return apply("elementwise_binary", {a.astype(dtype), b.astype(dtype)},
               {{"expression", expression}});
}

}  // namespace ops
}  // namespace netcl
