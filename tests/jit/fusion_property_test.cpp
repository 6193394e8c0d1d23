// Random graphs of ops, computed with and without fusion. What fusion may change is the rounding
// of float16 values that stay in a kernel, and where a compiler's functions of vectors and of
// single elements differ in their last bits; both are in the tolerance.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <sstream>

#include "netcl/autograd.h"
#include "netcl/jit.h"
#include "netcl/ops.h"
#include "support/devices.h"

namespace netcl {
namespace {

using namespace ops;  // NOLINT: this file is about them

struct Choice {
  const char* name;
  int inputs;
  std::function<Tensor(const std::vector<Tensor>&, double)> apply;
};

// Functions that keep values where they do not explode, so that results can be compared; special
// values come in through the inputs.
const std::vector<Choice>& choices() {
  using T = const std::vector<Tensor>&;
  static const std::vector<Choice> all = {
      {"add", 2, [](T t, double) { return t[0] + t[1]; }},
      {"sub", 2, [](T t, double) { return t[0] - t[1]; }},
      {"mul", 2, [](T t, double) { return t[0] * t[1]; }},
      {"div", 2, [](T t, double) { return t[0] / (abs(t[1]) + 0.5); }},
      {"pow", 2, [](T t, double) { return pow(abs(t[0]) + 0.5, clamp(t[1], -2, 2)); }},
      {"maximum", 2, [](T t, double) { return maximum(t[0], t[1]); }},
      {"minimum", 2, [](T t, double) { return minimum(t[0], t[1]); }},
      {"add number", 1, [](T t, double k) { return t[0] + k; }},
      {"number minus", 1, [](T t, double k) { return k - t[0]; }},
      {"mul number", 1, [](T t, double k) { return t[0] * k; }},
      {"div number", 1, [](T t, double k) { return t[0] / (k + 3); }},
      {"neg", 1, [](T t, double) { return -t[0]; }},
      {"abs", 1, [](T t, double) { return abs(t[0]); }},
      {"sign", 1, [](T t, double) { return sign(t[0]); }},
      {"square", 1, [](T t, double) { return square(clamp(t[0], -9, 9)); }},
      {"reciprocal", 1, [](T t, double) { return reciprocal(abs(t[0]) + 0.5); }},
      {"exp", 1, [](T t, double) { return exp(clamp(t[0], -5, 5)); }},
      {"expm1", 1, [](T t, double) { return expm1(clamp(t[0], -5, 5)); }},
      {"log", 1, [](T t, double) { return log(abs(t[0]) + 0.1); }},
      {"log1p", 1, [](T t, double) { return log1p(abs(t[0])); }},
      {"sqrt", 1, [](T t, double) { return sqrt(abs(t[0]) + 0.01); }},
      {"rsqrt", 1, [](T t, double) { return rsqrt(abs(t[0]) + 0.1); }},
      {"sin", 1, [](T t, double) { return sin(clamp(t[0], -10, 10)); }},
      {"cos", 1, [](T t, double) { return cos(clamp(t[0], -10, 10)); }},
      {"erf", 1, [](T t, double) { return erf(t[0]); }},
      {"relu", 1, [](T t, double) { return relu(t[0]); }},
      {"leaky_relu", 1, [](T t, double k) { return leaky_relu(t[0], k); }},
      {"prelu", 2, [](T t, double) { return prelu(t[0], t[1]); }},
      {"sigmoid", 1, [](T t, double) { return sigmoid(t[0]); }},
      {"tanh", 1, [](T t, double) { return tanh(t[0]); }},
      {"gelu", 1, [](T t, double) { return gelu(t[0]); }},
      {"gelu_tanh", 1, [](T t, double) { return gelu(t[0], true); }},
      {"silu", 1, [](T t, double) { return silu(t[0]); }},
      {"elu", 1, [](T t, double) { return elu(t[0], 0.7); }},
      {"softplus", 1, [](T t, double) { return softplus(t[0]); }},
      {"mish", 1, [](T t, double) { return mish(t[0]); }},
      {"hard_sigmoid", 1, [](T t, double) { return hard_sigmoid(t[0]); }},
      {"hard_swish", 1, [](T t, double) { return hard_swish(t[0]); }},
      {"hard_tanh", 1, [](T t, double) { return hard_tanh(t[0]); }},
      {"clamp", 1, [](T t, double k) { return clamp(t[0], -k, k + 1); }},
      {"where", 2, [](T t, double) { return where(isfinite(t[0]), t[0], t[1]); }},
      {"reshape", 1, [](T t, double) { return t[0].reshape({-1}) + 0.5; }},
      {"unsqueeze", 1, [](T t, double) { return t[0].unsqueeze(0) * 0.5; }},
      {"turn", 1, [](T t, double) { return t[0].ndim() < 2 ? t[0] : t[0].transpose() + 1.0; }},
      {"widen", 1,
       [](T t, double) {
         return t[0].dtype() == DType::float16 ? cast(t[0], DType::float32) : t[0];
       }},
      {"isnan", 1, [](T t, double) { return cast(isnan(t[0]), t[0].dtype()) + t[0]; }},
  };
  return all;
}

// Which op, of which earlier values; the same numbers give the same graph every time.
struct Plan {
  struct Call {
    const Choice* choice;
    std::vector<std::size_t> inputs;
    double number;
  };
  std::vector<Call> calls;
  std::vector<std::size_t> results;
  int reduction = 0;
  Axes axes;

  std::string text() const {
    std::ostringstream out;
    for (const auto& call : calls) {
      out << call.choice->name << "(";
      for (const auto input : call.inputs) out << input << " ";
      out << call.number << ") ";
    }
    return out.str();
  }
};

class Graphs {
 public:
  Graphs(Queue queue, unsigned seed) : queue_(std::move(queue)), random_(seed) {}

  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

  Plan make_plan(std::size_t inputs) {
    Plan plan;
    const auto count = 3 + below(23);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& choice = choices()[below(choices().size())];
      Plan::Call call{&choice, {}, static_cast<double>(below(40)) / 8 - 2.5};
      // Mostly of what was computed last, so that chains come about.
      for (int k = 0; k < choice.inputs; ++k)
        call.inputs.push_back(i > 0 && below(3) > 0
                                  ? inputs + i - 1 - below(std::min<std::size_t>(i, 3))
                                  : below(inputs + i));
      plan.calls.push_back(std::move(call));
    }
    plan.results = {inputs + count - 1};
    for (std::size_t i = below(3); i-- > 0;) plan.results.push_back(inputs + below(count));
    plan.reduction = static_cast<int>(below(8));
    return plan;
  }

  std::vector<Tensor> make_inputs(DType dtype, bool special) {
    static const std::vector<std::vector<Shape>> kShapes = {{{7}, {7}, {1}},
                                                            {{4, 5}, {5}, {4, 1}},
                                                            {{2, 3, 4}, {3, 1}, {2, 1, 4}},
                                                            {{33}, {33}, {33}},
                                                            {{3, 8}, {3, 8}, {}},
                                                            {{1, 5}, {5, 1}, {5}},
                                                            {{2, 2, 2, 2}, {2}, {2, 1, 1, 2}},
                                                            {{}, {}, {1}},
                                                            {{130}, {130}, {130}}};
    std::vector<Tensor> inputs;
    for (const auto& shape : kShapes[below(kShapes.size())])
      inputs.push_back(make(shape, special).astype(dtype));
    return inputs;
  }

  Tensor make(const Shape& shape, bool special) {
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    constexpr double kSpecial[] = {std::numeric_limits<double>::quiet_NaN(),
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   0.0,
                                   -0.0,
                                   1e-30,
                                   60000,
                                   -1};
    for (auto& value : values)
      value = special && below(6) == 0 ? kSpecial[below(std::size(kSpecial))]
                                       : std::normal_distribution<double>()(random_);
    auto tensor = Tensor::from_host(queue_, HostView(values, shape));
    // Now and then the same values through a strided view.
    if (shape.rank() > 0 && below(3) == 0) {
      auto sizes = shape.sizes();
      sizes.push_back(2);
      tensor = Tensor::from_host(queue_, HostView(values, shape))
                   .unsqueeze(-1)
                   .expand(Shape(sizes))
                   .contiguous()
                   .select(-1, 1);
    }
    return tensor;
  }

  const Queue queue_;
  std::mt19937 random_;
};

std::vector<Tensor> run(const Plan& plan, const std::vector<Tensor>& inputs) {
  auto values = inputs;
  for (const auto& call : plan.calls) {
    std::vector<Tensor> of;
    for (const auto i : call.inputs) of.push_back(values[i]);
    // Values whose shapes do not meet are replaced by the first.
    try {
      values.push_back(call.choice->apply(of, call.number));
    } catch (const ShapeError&) {
      values.push_back(of[0] + 1.0);
    }
  }
  std::vector<Tensor> results;
  for (const auto i : plan.results) results.push_back(values[i]);
  const auto& last = values.back();
  const Axes axes = last.ndim() > 1 ? Axes{plan.reduction % 2} : Axes{};
  switch (plan.reduction / 2) {
    case 0:
      results[0] = sum(last, axes);
      break;
    case 1:
      results[0] = mean(last, axes);
      break;
    case 2:
      results[0] = max(last, axes);
      break;
    default:
      break;
  }
  return results;
}

double largest_of(const std::vector<double>& values) {
  double largest = 1;
  for (const auto value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  return largest;
}

// Infinities and NaN agree, and others within `relative` of the largest value around. A value near
// the largest of the dtype may round to infinity on one side.
::testing::AssertionResult agree(const Tensor& actual, const Tensor& expected, double relative,
                                 double overflow) {
  if (!(actual.shape() == expected.shape()) || actual.dtype() != expected.dtype())
    return ::testing::AssertionFailure() << "shape or dtype";
  const auto a = actual.to_vector<double>(), e = expected.to_vector<double>();
  const auto scale = largest_of(e);
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(e[i])) continue;
    if (a[i] == e[i]) continue;
    if (std::fabs(a[i]) > overflow && std::fabs(e[i]) > overflow) continue;
    if (std::isfinite(a[i]) && std::isfinite(e[i]) &&
        std::fabs(a[i] - e[i]) <= relative * (std::fabs(e[i]) + scale))
      continue;
    return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " for " << e[i];
  }
  return ::testing::AssertionSuccess();
}

// The largest error of a result in parts of its largest value, where both are finite.
double error_of(const Tensor& actual, const Tensor& reference) {
  const auto a = actual.to_vector<double>(), e = reference.to_vector<double>();
  const auto scale = largest_of(e);
  double largest = 0;
  for (std::size_t i = 0; i < e.size(); ++i)
    if (std::isfinite(a[i]) && std::isfinite(e[i]))
      largest = std::max(largest, std::fabs(a[i] - e[i]) / scale);
  return largest;
}

// On the CPU backend, where no op has to be compiled.
std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const auto& tensor : tensors)
    result.push_back(tensor.to(manager().default_device("cpu").queue));
  return result;
}

std::vector<Tensor> as_float32(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const auto& tensor : tensors) result.push_back(tensor.astype(DType::float32));
  return result;
}

// `relative` is for float32; a graph may make roundings in its middle as much larger.
void compare_graphs(const Queue& queue, unsigned first, unsigned count, double relative) {
  const auto before = fusion_stats();
  for (unsigned seed = first; seed < first + count; ++seed) {
    Graphs graphs(queue, seed);
    const auto dtype = seed % 4 == 1   ? DType::float64
                       : seed % 4 == 2 ? DType::float16
                                       : DType::float32;
    const bool is_half = dtype == DType::float16;
    // Float16 graphs are kept ordinary: an unrounded value next to infinity may stay finite.
    const bool special = seed % 3 == 0 && !is_half;
    const auto inputs = graphs.make_inputs(dtype, special);
    const auto plan = graphs.make_plan(inputs.size());
    const auto expected = run(plan, on_host(inputs));
    const auto actual = jit([&] { return run(plan, inputs); })();
    const auto exact = is_half ? run(plan, as_float32(on_host(inputs))) : expected;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      std::ostringstream where;
      where << "graph " << seed << " " << name_of(dtype) << " result " << i << ": " << plan.text();
      if (is_half)  // not further from the float32 result than what is rounded op by op
        ASSERT_LE(error_of(actual[i], exact[i]), 4 * error_of(expected[i], exact[i]) + 2e-3)
            << where.str();
      else
        ASSERT_TRUE(agree(actual[i], expected[i],
                          dtype == DType::float64 ? relative * 1e-6 : relative, 1e37))
            << where.str();
    }
  }
  const auto after = fusion_stats();
  EXPECT_GT(after.fused_nodes - before.fused_nodes, count * 4u);  // they were fused indeed
  EXPECT_EQ(after.fallbacks, before.fallbacks);
}

// Each graph is a compilation; `make test-fusion` runs many.
unsigned graphs_on_opencl(unsigned usual) {
  const char* many = std::getenv("FUSION_GRAPHS");
  return many == nullptr ? usual : static_cast<unsigned>(std::atoi(many));
}

// ---- gradients

// The sum of a graph's results and its gradients with respect to the inputs.
std::vector<Tensor> differentiate(const Plan& plan, std::vector<Tensor> inputs) {
  for (auto& input : inputs) {
    input = input.detach();
    input.set_requires_grad();
  }
  Tape tape;
  auto loss = Tensor::full(inputs[0].queue(), {}, 0, inputs[0].dtype());
  for (const auto& result : run(plan, inputs)) loss = loss + sum(result);
  auto results = tape.gradient(loss, inputs);
  results.push_back(loss.detach());
  return results;
}

void compare_gradients(const Queue& queue, unsigned first, unsigned count, double relative) {
  for (unsigned seed = first; seed < first + count; ++seed) {
    Graphs graphs(queue, seed);
    const auto dtype = seed % 3 == 1 ? DType::float64 : DType::float32;
    const auto inputs = graphs.make_inputs(dtype, false);
    const auto plan = graphs.make_plan(inputs.size());
    const auto expected = differentiate(plan, on_host(inputs));
    const auto actual = jit([&] { return differentiate(plan, inputs); })();
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_TRUE(
          agree(actual[i], expected[i], dtype == DType::float64 ? relative * 1e-6 : relative, 1e37))
          << "graph " << seed << " gradient " << i << ": " << plan.text();
  }
}

TEST(FusionProperty, GradientsOnTheCpuBackend) {
  compare_gradients(manager().default_device("cpu").queue, 5000, 1000, 1e-4);
}

TEST(FusionProperty, GradientsOnOpenCL) {
  NETCL_NEED_OPENCL();
  compare_gradients(test::opencl_devices()[0].queue, 5000, graphs_on_opencl(6), 5e-3);
}

TEST(FusionProperty, RandomGraphsOnTheCpuBackend) {
  compare_graphs(manager().default_device("cpu").queue, 0, 1200, 1e-5);
}

TEST(FusionProperty, RandomGraphsOnOpenCL) {
  NETCL_NEED_OPENCL();
  compare_graphs(test::opencl_devices()[0].queue, 0, graphs_on_opencl(24), 2e-3);
}

}  // namespace
}  // namespace netcl
