// The self-test can fail: every kind of wrong op is planted and must be reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "netcl/runtime.h"
#include "ops/registry.h"
#include "ops/toy_op.h"
#include "selftest/cases.h"
#include "selftest/compare.h"
#include "support/devices.h"

namespace netcl {
namespace {

using selftest_detail::compare;
using selftest_detail::run_ops;
using test::toy_host;
using test::toy_op;
using test::toy_variant;

constexpr float kInf = std::numeric_limits<float>::infinity();

SelftestReport run(const OpDef& op, const Queue& queue, const std::string& filter = "") {
  SelftestOptions options;
  options.filter = filter;
  return run_ops({&op}, queue, options);
}

std::string id_of(const Queue& queue, const std::string& rest) {
  return std::string(queue.is_cpu() ? "twice/host/f32/" : "twice/simple/f32/") + rest;
}

// The message of the case `rest`, "" when it passed. Only that one: in the others the memory around
// the tensors is not ours, and planted writes would damage it.
std::string message_of(const OpDef& op, const Queue& queue, const std::string& rest = "17") {
  const auto id = id_of(queue, rest);
  const auto report = run(op, queue, id);
  EXPECT_EQ(report.total.run, 1u);
  if (report.failures.empty()) return {};
  EXPECT_EQ(report.failures[0].id, id);
  return report.failures[0].message;
}

struct Plant {
  const char* what;
  const char* kernel;  // the body of the OpenCL kernel
  test::HostBody host;
  const char* message;
};

const Plant kPlants[] = {
    {"one element slightly wrong", "y[i] = 2.0f * x[i] + (i == n - 1 ? 1e-5f : 0.0f);",
     [](float* x, float* y, std::int64_t n) {
       test::twice(x, y, n);
       y[n - 1] += 1e-5f;
     },
     "output 0: 1 of 17 elements are wrong; at (16): "},
    {"writes behind the output", "y[i] = 2.0f * x[i]; if (i == 0) y[n] = 3.0f;",
     [](float* x, float* y, std::int64_t n) {
       test::twice(x, y, n);
       y[n] = 3;
     },
     "output 0: memory at element 17 "},
    {"writes before the output", "y[i] = 2.0f * x[i]; if (i == 0) y[-1] = 3.0f;",
     [](float* x, float* y, std::int64_t n) {
       test::twice(x, y, n);
       y[-1] = 3;
     },
     "output 0: memory at element -1 "},
    {"reads behind the input", "y[i] = 2.0f * x[i] + 0.0f * x[i + 1];",
     [](float* x, float* y, std::int64_t n) {
       for (std::int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + 0 * x[i + 1];
     },
     "output 0: 1 of 17 elements are wrong; at (16): nan instead of "},
    {"reads before the input", "y[i] = x[i] + x[i] + 0.0f * x[(long)i - 1];",
     [](float* x, float* y, std::int64_t n) {
       for (std::int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + 0 * x[i - 1];
     },
     "output 0: 1 of 17 elements are wrong; at (0): nan instead of "},
    {"changes its input",
     "y[i] = 2.0f * x[i]; if (i == 3) ((volatile __global float*)x)[3] = 7.0f;",
     [](float* x, float* y, std::int64_t n) {
       test::twice(x, y, n);
       x[3] = 7;
     },
     "input 0: memory at element 3 "},
    {"NaN for a number", "y[i] = i == 2 ? NAN : 2.0f * x[i];",
     [](float* x, float* y, std::int64_t n) {
       test::twice(x, y, n);
       y[2] = std::nanf("");
     },
     "at (2): nan instead of "},
    {"infinity for a number", "y[i] = i == 2 ? INFINITY : 2.0f * x[i];",
     [](float* x, float* y, std::int64_t n) {
       test::twice(x, y, n);
       y[2] = kInf;
     },
     "at (2): inf instead of "},
    {"an element left out", "if (i != 5) y[i] = 2.0f * x[i];",
     [](float* x, float* y, std::int64_t n) {
       for (std::int64_t i = 0; i < n; ++i)
         if (i != 5) y[i] = 2 * x[i];
     },
     "at (5): nan instead of "},
    {"two elements changed round", "y[i] = 2.0f * x[i < 2 ? 1 - i : i];",
     [](float* x, float* y, std::int64_t n) {
       test::twice(x, y, n);
       std::swap(y[0], y[1]);
     },
     "output 0: 2 of 17 elements are wrong"},
};

TEST(Harness, RightOpsPass) {
  test::on_every_device([](const Queue& queue) {
    const auto report = run(toy_op(), queue);
    EXPECT_EQ(report.total.run, 4u);  // two samples, dense and as views
    EXPECT_TRUE(report.failures.empty());
  });
}

TEST(Harness, FindsEveryPlantedMistake) {
  test::on_every_device([](const Queue& queue) {
    for (const auto& plant : kPlants) {
      SCOPED_TRACE(plant.what);
      auto op = toy_op();
      op.host = toy_host(plant.host);
      op.variants = {toy_variant("twice.simple", "", plant.kernel)};
      const auto message = message_of(op, queue);
      EXPECT_NE(message.find(plant.message), std::string::npos) << message;
    }
  });
}

// Samples whose values are special: the mistake is to lose them.
TEST(Harness, FindsLostNaNAndInfinity) {
  struct Lost {
    double input;
    const char* kernel;
    test::HostBody host;
    const char* message;
  };
  const Lost losses[] = {
      {std::nan(""), "y[i] = isnan(x[i]) ? 0.0f : 2.0f * x[i];",
       [](float* x, float* y, std::int64_t n) {
         for (std::int64_t i = 0; i < n; ++i) y[i] = std::isnan(x[i]) ? 0 : 2 * x[i];
       },
       "0 instead of nan"},
      {kInf, "y[i] = fmin(2.0f * x[i], FLT_MAX);",
       [](float* x, float* y, std::int64_t n) {
         for (std::int64_t i = 0; i < n; ++i)
           y[i] = std::fmin(2 * x[i], std::numeric_limits<float>::max());
       },
       "instead of inf"},
      {-kInf, "y[i] = fabs(2.0f * x[i]);",
       [](float* x, float* y, std::int64_t n) {
         for (std::int64_t i = 0; i < n; ++i) y[i] = std::fabs(2 * x[i]);
       },
       "inf instead of -inf"},
  };
  test::on_every_device([&](const Queue& queue) {
    for (const auto& lost : losses) {
      SCOPED_TRACE(lost.message);
      auto op = toy_op();
      op.samples = [&lost] {
        SampleInput input{{3}, Fill::values};
        input.values = {1, lost.input, 2};
        return std::vector<OpSample>{{"special", {input}}};
      };
      EXPECT_EQ(run(op, queue).total.failed, 0u);
      op.host = toy_host(lost.host);
      op.variants = {toy_variant("twice.simple", "", lost.kernel)};
      const auto message = message_of(op, queue, "special");
      EXPECT_NE(message.find("1 of 3 elements are wrong; at (1): "), std::string::npos) << message;
      EXPECT_NE(message.find(lost.message), std::string::npos) << message;
    }
  });
}

TEST(Harness, ExceptionsAreFailuresOfTheirCase) {
  test::on_every_device([](const Queue& queue) {
    auto op = toy_op();
    op.host = [](const OpCall&) { throw Error("[twice] out of order"); };
    op.variants[0].run = [](const OpCall&, const VariantRun&) {
      throw Error("[twice] out of order");
    };
    const auto report = run(op, queue);
    EXPECT_EQ(report.total.failed, 4u);
    for (const auto& failure : report.failures)
      EXPECT_EQ(failure.message, "exception: [twice] out of order");
    if (queue.is_cpu()) return;
    op.variants = {toy_variant("twice.simple", "", "y[i] = nonsense;")};
    EXPECT_NE(message_of(op, queue).find("nonsense"), std::string::npos);
  });
}

TEST(Harness, DeclinedCasesAreCountedApart) {
  NETCL_NEED_OPENCL();
  auto op = toy_op();
  op.variants[0].declines = [](const OpCall& call, const ExtendedDeviceProfile&) {
    return call.inputs[0].ndim() == 2 ? "no matrices" : "";
  };
  const auto report = run(op, test::opencl_devices()[0].queue);
  EXPECT_EQ(report.total.run, 2u);
  EXPECT_EQ(report.total.declined, 2u);
  EXPECT_EQ(report.total.failed, 0u);
}

TEST(Harness, CountsEveryKernelByItself) {
  NETCL_NEED_OPENCL();
  auto op = toy_op();
  op.variants.push_back(op.variants[0]);
  op.variants[1].name = "twice.other";
  op.variants[1].declines = [](const OpCall&, const ExtendedDeviceProfile&) { return "never"; };
  const auto report = run(op, test::opencl_devices()[0].queue);
  ASSERT_EQ(report.kernels.size(), 3u);
  EXPECT_EQ(report.kernels[0].first, "twice/simple");
  EXPECT_EQ(report.kernels[0].second.run, 4u);
  EXPECT_EQ(report.kernels[1].first, "twice/other");
  EXPECT_EQ(report.kernels[1].second.run, 0u);
  EXPECT_EQ(report.kernels[1].second.declined, 4u);
  EXPECT_EQ(report.kernels[2].first, "twice/auto");
  EXPECT_EQ(report.total.empty, 0u);
}

// Right at first; then one element is the next number, which the tolerance allows, or lost.
TEST(Harness, FindsCallsThatComeBackWithOtherBits) {
  struct Late {
    int call;
    float (*wrong)(float y);
    const char* message;
  };
  const auto next = [](float y) { return std::nextafter(y, kInf); };
  const auto lost = [](float) { return std::nanf(""); };
  const Late lates[] = {{2, next, "in the second call: output 0: element 4 is "},
                        {3, next, "in the third call: output 0: element 4 is "},
                        {4, next, "in the fourth call: output 0: element 4 is "},
                        {4, lost, "in the fourth call: output 0: 1 of 17 elements are wrong"}};
  for (const auto& late : lates) {
    auto op = toy_op();
    op.host = [&late, calls = std::make_shared<int>()](const OpCall& call) {
      toy_host(test::twice)(call);
      auto* y = static_cast<float*>(call.outputs[0].host_data());
      if (++*calls == late.call) y[4] = late.wrong(y[4]);
    };
    const auto message = message_of(op, manager().default_device("cpu").queue);
    EXPECT_NE(message.find(late.message), std::string::npos) << message;
  }
}

TEST(Harness, CallsAreRepeatedFromWhatTheyLaunched) {
  NETCL_NEED_OPENCL();
  const auto queue = test::opencl_devices()[0].queue;
  SelftestOptions options;
  options.filter = "relu/auto/f32";
  const auto report = run_ops({&find_op("relu")}, queue, options);
  EXPECT_EQ(report.total.failed, 0u);
  EXPECT_EQ(report.total.repeated, report.total.run - report.total.empty);
  options.repeats = false;
  EXPECT_EQ(run_ops({&find_op("relu")}, queue, options).total.repeated, 0u);
}

TEST(Harness, ViewsMustHaveTheirShapeAndDtype) {
  test::on_every_device([](const Queue& queue) {
    auto op = toy_op();
    op.reference = [](RefCall& call) { call.outputs[0].values = call.inputs[0].values; };
    op.view = [](const Tensor& x, const Attributes&) { return x; };
    EXPECT_EQ(run(op, queue).total.failed, 0u);
    op.view = [](const Tensor& x, const Attributes&) { return x.astype(DType::float64); };
    auto failures = run(op, queue, "twice/view/f32/17").failures;
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].message, "output 0: the dtype is float64 instead of float32");
    op.view = [](const Tensor& x, const Attributes&) { return x.unsqueeze(0); };
    failures = run(op, queue, "twice/view/f32/17").failures;
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].message, "output 0: the shape is (1, 17) instead of (17,)");
  });
}

// ---- gradients

using Backward = std::function<std::vector<Tensor>(const OpGradient&)>;

// The message of the gradient's check. The op computes in double there.
std::string gradient_message(const Queue& queue, Backward backward) {
  auto op = toy_op();
  op.host = [](const OpCall& call) { call.outputs[0].copy_from(call.inputs[0] * 2.0); };
  op.variants[0].run = [](const OpCall& call, const VariantRun&) {
    call.outputs[0].copy_from(call.inputs[0] * 2.0);
  };
  op.backward = std::move(backward);
  const auto report = run(op, queue, "twice/gradient/f64/17");
  EXPECT_EQ(report.total.run, 1u);
  if (report.failures.empty()) return {};
  EXPECT_EQ(report.failures[0].id, "twice/gradient/f64/17");
  return report.failures[0].message;
}

TEST(Harness, FindsWrongGradients) {
  test::on_every_device([](const Queue& queue) {
    using Result = std::vector<Tensor>;
    EXPECT_EQ(gradient_message(queue, [](const OpGradient& g) { return Result{g.dy() * 2.0}; }),
              "");
    const auto wrong =
        gradient_message(queue, [](const OpGradient& g) { return Result{g.dy() * 2.001}; });
    EXPECT_NE(wrong.find("the gradient of input 0 at element 0 is "), std::string::npos) << wrong;
    const auto one = gradient_message(queue, [](const OpGradient& g) {
      const Tensor dx = g.dy() * 2.0;
      ops::mul_(dx.narrow(0, 13, 1), 1.01);
      return Result{dx};
    });
    EXPECT_NE(one.find("at element 13 is "), std::string::npos) << one;
    const auto nan =
        gradient_message(queue, [](const OpGradient& g) { return Result{g.dy() * std::nan("")}; });
    EXPECT_NE(nan.find("is nan instead of"), std::string::npos) << nan;
    EXPECT_EQ(gradient_message(queue,
                               [](const OpGradient& g) {
                                 return Result{g.dy().reshape({1, 17})};
                               }),
              "exception: [backward] the gradient of input 0 of twice must have its shape (17,): "
              "(1, 17)");
    EXPECT_EQ(gradient_message(queue,
                               [](const OpGradient& g) {
                                 return Result{(g.dy() * 2.0).astype(DType::float32)};
                               }),
              "exception: [backward] the gradient of input 0 of twice must have its dtype float64: "
              "float32");
    EXPECT_NE(gradient_message(queue, [](const OpGradient&) { return Result{{}}; })
                  .find("the gradient of input 0 at element 0 is 0 instead of"),
              std::string::npos)
        << "a gradient that is missing counts as 0";
    EXPECT_EQ(gradient_message(
                  queue, [](const OpGradient&) -> Result { throw Error("[twice] no gradient"); }),
              "exception: [twice] no gradient");
  });
}

// ---- ids and filters

TEST(Harness, EveryIdIsAFilterForExactlyItsCase) {
  test::on_every_device([](const Queue& queue) {
    const auto ids = selftest_cases(queue, {.filter = "lt,sign/gradient"});
    ASSERT_GT(ids.size(), 20u);
    for (std::size_t k = 0; k < ids.size(); k += 7) {
      std::vector<std::string> told;
      SelftestOptions options;
      options.filter = ids[k];
      options.progress = [&](const std::string& id, std::size_t) { told.push_back(id); };
      const auto report = selftest(queue, options);
      EXPECT_EQ(report.total.run + report.total.declined, 1u) << ids[k];
      EXPECT_EQ(told, std::vector<std::string>{ids[k]});
    }
  });
}

TEST(Harness, IdsAreUnique) {
  test::on_every_device([](const Queue& queue) {
    auto ids = selftest_cases(queue);
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    EXPECT_EQ(twice, ids.end()) << *twice;
  });
}

TEST(Harness, Filters) {
  const auto cpu = manager().default_device("cpu").queue;
  const auto count = [&](const char* filter) { return run(toy_op(), cpu, filter).total.run; };
  EXPECT_EQ(count(""), 4u);
  EXPECT_EQ(count("twice"), 4u);
  EXPECT_EQ(count("twice/"), 4u);
  EXPECT_EQ(count("twice/host/f32"), 4u);
  EXPECT_EQ(count("twi"), 0u);  // whole parts only
  EXPECT_EQ(count("twi*"), 4u);
  EXPECT_EQ(count("*"), 4u);
  EXPECT_EQ(count("*@views"), 2u);
  EXPECT_EQ(count("twice/*/5x3"), 1u);
  EXPECT_EQ(count("*/5x3*"), 2u);
  EXPECT_EQ(count("twice/host/f32/17"), 1u);
  EXPECT_EQ(count("twice/host/f32/17,*/5x3"), 2u);
  EXPECT_EQ(count("nothing,twice/host/f32/17"), 1u);
  EXPECT_EQ(count("twice/simple"), 0u);
}

TEST(Harness, StopsAfterEnoughFailures) {
  auto op = toy_op();
  op.host = [](const OpCall&) { throw Error("no"); };
  SelftestOptions options;
  options.max_failures = 2;
  const auto report = run_ops({&op, &op}, manager().default_device("cpu").queue, options);
  EXPECT_EQ(report.failures.size(), 2u);
  EXPECT_EQ(report.total.run, 2u);
  EXPECT_EQ(report.ops.size(), 1u);
}

TEST(Harness, AnInterruptKeepsTheReport) {
  const auto op = toy_op();
  SelftestOptions options;
  std::size_t told = 0;
  options.progress = [&](const std::string&, std::size_t) {
    if (++told == 3) throw Interrupted("[test] Ctrl+C");
  };
  const auto report = run_ops({&op, &op}, manager().default_device("cpu").queue, options);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.total.run, 2u);
  EXPECT_TRUE(report.failures.empty());
}

// ---- tolerances

std::string compared(DType dtype, double actual, double expected, Tolerance tolerance) {
  HostArray array(Shape{1}, dtype);
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_class_v<T>)
      array.values<T>()[0] = T(actual);
    else
      array.values<T>()[0] = static_cast<T>(actual);
  });
  return compare(array, {Shape{1}, dtype, {expected}}, tolerance);
}

TEST(Harness, TheEdgeOfTheTolerance) {
  constexpr double kEps = std::numeric_limits<float>::epsilon();
  EXPECT_EQ(compared(DType::float32, 1 + 4 * kEps, 1, {4, 0}), "");
  EXPECT_NE(compared(DType::float32, 1 + 5 * kEps, 1, {4, 0}), "");
  EXPECT_EQ(compared(DType::float32, 4 * kEps, 0, {0, 4}), "");
  EXPECT_NE(compared(DType::float32, 5 * kEps, 0, {0, 4}), "");
  EXPECT_NE(compared(DType::float32, 4 * kEps, 0, {4, 0}), "");  // ulps are relative
  EXPECT_EQ(compared(DType::float16, 1 + 0x1p-9, 1, {2, 0}), "");
  EXPECT_NE(compared(DType::float16, 1 + 3 * 0x1p-10, 1, {2, 0}), "");
  EXPECT_EQ(compared(DType::float64, 1 + 0x1p-51, 1, {2, 0}), "");
  EXPECT_NE(compared(DType::float64, 1 + kEps, 1, {2, 0}), "");
  EXPECT_EQ(compared(DType::int32, 5, 5, {100, 100}), "");
  EXPECT_NE(compared(DType::int32, 6, 5, {100, 0}), "");  // integers are exact
  EXPECT_NE(compared(DType::boolean, 1, 0, {}), "");
  EXPECT_EQ(compared(DType::float32, 0, 1e-40, {}), "");              // a flushed subnormal number
  EXPECT_EQ(compared(DType::float16, 2049.0 - 1, 2049, {0, 0}), "");  // what rounding makes of it
  EXPECT_EQ(compared(DType::float32, kInf, 1e300, {}), "");           // overflow
  EXPECT_NE(compared(DType::float32, 3e38, 1e300, {}), "");
}

}  // namespace
}  // namespace netcl
