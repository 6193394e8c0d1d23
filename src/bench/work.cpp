#include "bench/work.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "bench/cases.h"
#include "bench/op_work.h"
#include "device/vector_unit.h"
#include "netcl/autograd.h"
#include "netcl/capabilities.h"
#include "netcl/capture.h"
#include "netcl/jit.h"
#include "netcl/kernel.h"
#include "netcl/nn.h"
#include "netcl/ops.h"
#include "netcl/optim.h"
#include "netcl/train.h"

namespace netcl::bench {
namespace {

using nlohmann::json;

constexpr std::int64_t kClasses = 10, kImageClasses = 1000, kDigit = 28, kImage = 224;

std::int64_t number(const json& parameters, const char* name) {
  const auto found = parameters.find(name);
  check<ArgumentError>(found != parameters.end() && found->is_number_integer() && *found > 0 &&
                           *found <= std::int64_t{1} << 32,
                       "[bench] '{}' must be a positive integer: {}", name, parameters.dump());
  return found->get<std::int64_t>();
}

Work matmul(const Queue& queue, const json& p) {
  const auto m = number(p, "m"), n = number(p, "n"), k = number(p, "k");
  const auto a = input(queue, {m, k}, 1), b = input(queue, {k, n}, 2);
  return work([=] { return ops::matmul(a, b); });
}

struct ConvolutionInputs {
  Tensor x, w;
  ops::Conv2dOptions options;
};

ConvolutionInputs convolution_inputs(const Queue& queue, const json& p) {
  const auto c = number(p, "c"), size = number(p, "size"), filter = number(p, "filter");
  const auto stride = number(p, "stride"), groups = number(p, "groups");
  ops::Conv2dOptions options;
  options.stride = {stride, stride};
  options.padding = {p.value("padding", 0), p.value("padding", 0)};
  options.groups = groups;
  return {input(queue, {number(p, "n"), c, size, size}, 1),
          input(queue, {number(p, "k"), c / groups, filter, filter}, 2), options};
}

Work convolution(const Queue& queue, const json& p) {
  return work(
      [in = convolution_inputs(queue, p)] { return ops::conv2d(in.x, in.w, {}, in.options); });
}

Work convolution_gradient(const Queue& queue, const json& p, bool of_weights) {
  const auto in = convolution_inputs(queue, p);
  return gradient_work(of_weights ? in.w : in.x, [&](const Tensor& wanted) {
    return of_weights ? ops::conv2d(in.x, wanted, {}, in.options)
                      : ops::conv2d(wanted, in.w, {}, in.options);
  });
}

Work elementwise(const Queue& queue, const std::string& kind, const json& p) {
  const auto n = number(p, "n");
  const auto a = input(queue, {n}, 1);
  if (kind == "sum") return work([=] { return ops::sum(a); });
  const auto b = input(queue, {n}, 2);
  if (kind == "add") return work([=] { return ops::add(a, b); });
  const auto c = input(queue, {n}, 3);
  return work(
      [chain = jit([=] { return ops::relu((a * b + c) * 1.5 - a) + 0.25; })] { return chain(); });
}

Work rows(const Queue& queue, const std::string& kind, const json& p) {
  const auto count = number(p, "rows"), length = number(p, "columns");
  const auto x = input(queue, {count, length}, 1, 8);
  if (kind == "softmax") return work([=] { return ops::softmax(x); });
  const auto w = input(queue, {length}, 2), b = input(queue, {length}, 3);
  return work([=] { return ops::layer_norm(x, w, b); });
}

// Each op waits for the one before it.
Work launches(const Queue& queue, const json& p) {
  const auto count = number(p, "count");
  const auto x = input(queue, {16}, 1);
  return work([=] {
    auto y = x;
    for (std::int64_t i = 0; i < count; ++i) y = ops::add(y, 1.0);
    return y;
  });
}

// Weights that every contender can make: uniform, with the variance of Kaiming's rule.
void fill_weights(nn::Module& model, const Queue& queue) {
  std::uint32_t seed = 100;
  for (const auto& [name, parameter] : model.named_parameters()) {
    ++seed;
    if (parameter.ndim() < 2) continue;  // biases and norms stay as they are made
    const auto fan = static_cast<double>(parameter.numel() / parameter.size(0));
    parameter.copy_from(input(queue, parameter.shape(), seed, std::sqrt(24 / fan)));
  }
  for (const auto& [name, parameter] : model.named_parameters())
    if (parameter.ndim() < 2 && name.ends_with("bias")) nn::init::zeros(parameter);
}

Tensor labels(const Queue& queue, std::int64_t batch) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(i) % kClasses;
  return Tensor::from_host(queue, values);
}

// Forward, backward and Adam. The probe is the loss of the first two steps, on weights of its own.
Work training(const DeviceHandle& device, const json& p) {
  const auto name = p.at("model").get<std::string>();
  const auto batch = number(p, "batch");
  const ActiveDevice active(device);
  const auto queue = device.queue;
  const auto x = input(queue, {batch, 1, kDigit, kDigit}, 1), y = labels(queue, batch);
  const auto step_of = [=] {
    const ActiveDevice there(device);
    const auto model = train::make_model(name, 1, kDigit, kDigit, kClasses);
    fill_weights(*model, queue);
    const auto adam = std::make_shared<optim::Adam>(model->parameters());
    return std::make_shared<CapturedStep>([model, adam](const std::vector<Tensor>& in) {
      Tape tape;
      const auto loss = ops::cross_entropy((*model)(in[0]), in[1]);
      adam->zero_grad();
      tape.backward(loss);
      adam->step();
      return std::vector<Tensor>{loss};
    });
  };
  const auto step = step_of();
  return {[=] {
            (*step)({x, y});
          },
          [=] {
            const auto fresh = step_of();
            std::vector<double> losses;
            for (int i = 0; i < 2; ++i) losses.push_back((*fresh)({x, y}).front().item());
            return losses;
          }};
}

Work inference(const DeviceHandle& device, const json& p) {
  const auto name = p.at("model").get<std::string>();
  const ActiveDevice active(device);
  const auto model = train::make_model(name, 3, kImage, kImage, kImageClasses);
  fill_weights(*model, device.queue);
  model->eval();
  const auto x = input(device.queue, {number(p, "batch"), 3, kImage, kImage}, 1);
  const auto step = std::make_shared<CapturedStep>([model](const std::vector<Tensor>& in) {
    const no_grad plain;
    return std::vector<Tensor>{(*model)(in[0])};
  });
  return work([=] { return (*step)({x}).front(); });
}

// ---- the limits: what the device does at best, in plain kernels
// Vectors of the device's own width: wider ones would not all stay in registers.
std::string fma_source(std::int64_t width) {
  std::string declared, step, total;
  for (std::int64_t i = 0; i < kLimitVectors; ++i) {
    declared += fmt::format("  V v{} = (V)(x[{}]);\n", i, i);
    step += fmt::format("    v{0} = fma(v{0}, a, b);\n", i);
    total += fmt::format("{}v{}", i == 0 ? "" : " + ", i);
  }
  return fmt::format(
      "typedef float{} V;\n"
      "__kernel void limit_fma(__global const float* x, __global float* y, float p, float q) {{\n"
      "  const V a = (V)(p), b = (V)(q);\n{}"
      "  for (int i = 0; i < {}; ++i) {{\n{}  }}\n"
      "  const V s = {};\n"
      "  y[get_global_id(0)] = s.s0 + s.s1 + s.s2 + s.s3;\n}}\n",
      width, declared, kLimitRounds * 16 / width, step, total);
}

// Each work-item walks through a part of its own, as CPUs like it; GPUs take the parts in turns.
constexpr const char* kStreamSource = R"(
#define PART 4096
#if STORE
#define PUT(p, v) __builtin_nontemporal_store(v, p)
#else
#define PUT(p, v) *(p) = v
#endif
__kernel void limit_triad(__global const float16* a, __global const float16* b,
                          __global float16* c, float s) {
  const size_t first = get_global_id(0) * PART;
  for (size_t i = first; i < first + PART; ++i) PUT(c + i, a[i] + b[i] * s);
}
__kernel void limit_read(__global const float16* a, __global float* sums) {
  const size_t first = get_global_id(0) * PART;
  float16 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (size_t i = first; i < first + PART; i += 4) {
    s0 += a[i]; s1 += a[i + 1]; s2 += a[i + 2]; s3 += a[i + 3];
  }
  const float16 s = s0 + s1 + s2 + s3;
  sums[get_global_id(0)] = s.s0 + s.s7 + s.s9 + s.sf;
}
)";
constexpr std::int64_t kStreamItems = kLimitElements / 16 / 4096;

Program limit_program(const Queue& queue, const std::string& name, std::string source) {
  KernelSpec spec{.name = name};
  spec.src = std::move(source);
  spec.tune = false;
  return spec.build(queue);
}

// Stores that go past the caches are an extension of some compilers.
Program stream_program(const Queue& queue, const std::string& name) {
  try {
    return limit_program(queue, name, std::string("#define STORE 1\n") + kStreamSource);
  } catch (const Error&) {
    return limit_program(queue, name, std::string("#define STORE 0\n") + kStreamSource);
  }
}

Work limit(const DeviceHandle& device, const std::string& kind) {
  check<ArgumentError>(device.backend != "cpu", "the limits are measured with OpenCL kernels");
  const auto queue = device.queue;
  if (kind == "limit_fma") {
    const auto& profile = device_profile(queue);
    const auto width = detail::vector_unit_floats(profile);
    // A CPU would run a group of all items on one core.
    const WorkSize local = profile.is_cpu ? WorkSize{1} : WorkSize{};
    const auto program = limit_program(queue, kind, fma_source(width));
    const auto x = input(queue, {kLimitItems}, 1), y = Tensor::from_shape(queue, {kLimitItems});
    return work([=] {
      program.run(queue, kLimitItems, local, x, y, 0.999f, 0.001f);
      return y;
    });
  }
  const auto a = input(queue, {kLimitElements}, 1);
  const auto program = stream_program(queue, kind);
  if (kind == "limit_read") {
    const auto y = Tensor::from_shape(queue, {kStreamItems});
    return work([=] {
      program.run(queue, kStreamItems, 1, a, y);
      return y;
    });
  }
  const auto b = input(queue, {kLimitElements}, 2), c = Tensor::from_shape(queue, {kLimitElements});
  return work([=] {
    program.run(queue, kStreamItems, 1, a, b, c, 3.0f);
    return c;
  });
}

}  // namespace

Tensor input(const Queue& queue, const Shape& shape, std::uint32_t seed, double scale) {
  const auto values = input_values(static_cast<std::size_t>(shape.numel()), seed, scale);
  return Tensor::from_host(queue, HostView(values, shape));
}

std::vector<double> probe_of(const Tensor& result) {
  const auto values = result.astype(DType::float32).contiguous().to_vector<float>();
  return probe_of(values.data(), values.size());
}

Work work(std::function<Tensor()> compute, std::vector<double> (*probe)(const Tensor&)) {
  const auto result = std::make_shared<Tensor>();
  // As of a function whose result nobody keeps: its memory is there for the next one.
  const auto call = [compute = std::move(compute), result] {
    *result = Tensor();
    *result = compute();
  };
  return {call, [call, result, probe] {
            if (!*result) call();
            return probe(*result);
          }};
}

Work gradient_work(Tensor x, const std::function<Tensor(const Tensor&)>& op) {
  x.set_requires_grad();
  const auto tape = std::make_shared<Tape>();
  const auto y = op(x);
  tape->stop();
  const auto grad = input(y.queue(), y.shape(), 3);
  return work([=] { return tape->gradient(y, {x}, grad).front(); });
}

namespace {

Work prepare_kind(const DeviceHandle& device, const std::string& parameters) {
  const auto p = json::parse(parameters, nullptr, false);
  check<ArgumentError>(p.is_object() && p.contains("kind") && p["kind"].is_string(),
                       "[bench] a case must be an object with a kind: {}", parameters);
  const auto kind = p["kind"].get<std::string>();
  const auto& queue = device.queue;
  if (kind == "matmul") return matmul(queue, p);
  if (kind == "conv2d") return convolution(queue, p);
  if (kind == "conv2d_data" || kind == "conv2d_weights")
    return convolution_gradient(queue, p, kind == "conv2d_weights");
  if (kind == "add" || kind == "sum" || kind == "chain") return elementwise(queue, kind, p);
  if (kind == "softmax" || kind == "layer_norm") return rows(queue, kind, p);
  if (kind == "op") return op_work(queue, p);
  if (kind == "launches") return launches(queue, p);
  if (kind == "train") return training(device, p);
  if (kind == "forward") return inference(device, p);
  if (kind == "limit_fma" || kind == "limit_triad" || kind == "limit_read")
    return limit(device, kind);
  fail<ArgumentError>("[bench] this kind of case is not known: {}", kind);
}

}  // namespace

Work prepare(const DeviceHandle& device, const std::string& parameters) {
  auto work = prepare_kind(device, parameters);
  work.finish = [queue = device.queue] { queue.finish(); };
  return work;
}

}  // namespace netcl::bench
