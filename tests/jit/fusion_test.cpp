// Fusion: the same values as without it, in as few kernels as the rules promise.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "netcl/autograd.h"
#include "netcl/jit.h"
#include "netcl/ops.h"
#include "netcl/program_cache.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using namespace ops;  // NOLINT: this file is about them

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// |a - b| within `ulps` of float (or of the dtype), NaN and infinities exactly.
void expect_close(const Tensor& actual, const Tensor& expected, double relative = 1e-6) {
  ASSERT_EQ(actual.shape(), expected.shape());
  ASSERT_EQ(actual.dtype(), expected.dtype());
  const auto a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (std::isnan(e[i])) {
      EXPECT_TRUE(std::isnan(a[i])) << i << ": " << a[i];
    } else if (std::isinf(e[i])) {
      EXPECT_EQ(a[i], e[i]) << i;
    } else {
      ASSERT_NEAR(a[i], e[i], relative * (std::fabs(e[i]) + 1e-3)) << i;
    }
  }
}

double tolerance_of(DType dtype) {
  return dtype == DType::float16 ? 4e-3 : dtype == DType::float64 ? 1e-13 : 2e-6;
}

Tensor values(const Queue& queue, const std::vector<double>& list, DType dtype = DType::float32) {
  return Tensor::from_host(queue, list).astype(dtype);
}

// How much the counters moved during a call.
template <class F>
FusionStats during(F&& f) {
  const auto before = fusion_stats();
  f();
  const auto after = fusion_stats();
  return {after.deferred - before.deferred, after.groups - before.groups,
          after.launches - before.launches, after.fused_nodes - before.fused_nodes,
          after.compiled - before.compiled, after.fallbacks - before.fallbacks};
}

Tensor chain(const Tensor& a, const Tensor& b, const Tensor& c) {
  return relu((a * b + c) * 1.5 - a) + 0.25;
}

TEST(Fusion, AddReluKeepsItsRelu) {
  test::on_every_device([](const Queue& queue) {
    const auto f = jit([](const Tensor& a, const Tensor& b) { return relu(a + b); });
    const auto y = f(values(queue, {-3, 1, 2, kNaN}), values(queue, {1, 1, -5, 0}));
    expect_close(y, values(queue, {0, 2, 0, kNaN}));
  });
}

TEST(Fusion, OneLaunchForAChain) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {1000}, 1), b = Tensor::random(queue, {1000}, 2),
               c = Tensor::random(queue, {1000}, 3);
    Tensor y;
    const auto stats = during([&] { y = jit(chain)(a, b, c); });
    EXPECT_EQ(stats.deferred, 6u);
    EXPECT_EQ(stats.launches, 1u);
    EXPECT_EQ(stats.fused_nodes, 6u);
    EXPECT_EQ(stats.fallbacks, 0u);
    expect_close(y, chain(a, b, c));
    const auto explained = explain(chain, a, b, c);
    ASSERT_EQ(explained.groups.size(), 1u);
    EXPECT_EQ(explained.groups[0].inputs.size(), 3u);  // a is used twice and read once
    EXPECT_EQ(explained.groups[0].bytes_read, 12000u);
    EXPECT_EQ(explained.groups[0].bytes_written, 4000u);
    EXPECT_NE(explained.groups[0].source.find("__kernel"), std::string::npos);
    EXPECT_NE(explained.to_string(true).find("relu"), std::string::npos);
  });
}

TEST(Fusion, SameBitsEveryTime) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {333}, 1), b = Tensor::random(queue, {333}, 2);
    const auto f = jit([](const Tensor& x, const Tensor& z) { return tanh(exp(x) * z - x); });
    EXPECT_EQ(f(a, b).to_vector<float>(), f(a, b).to_vector<float>());
  });
}

TEST(Fusion, Dtypes) {
  test::on_every_device([](const Queue& queue) {
    for (const auto dtype : {DType::float32, DType::float64, DType::float16}) {
      const auto a = Tensor::random(queue, {37}, 1).astype(dtype);
      const auto b = Tensor::random(queue, {37}, 2).astype(dtype);
      const auto f = [](const Tensor& x, const Tensor& z) { return sigmoid(x * z + 0.5) * 2.0; };
      const auto stats = during([&] { expect_close(jit(f)(a, b), f(a, b), tolerance_of(dtype)); });
      EXPECT_EQ(stats.launches, 1u);
    }
  });
}

TEST(Fusion, IntegersRunAtOnce) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::arange(queue, -5, 5, 1, DType::int32);
    const auto f = [](const Tensor& x) { return relu(x * 3.0 + x); };
    Tensor y;
    EXPECT_EQ(during([&] { y = jit(f)(a); }).deferred, 0u);
    EXPECT_EQ(y.to_vector<std::int32_t>(), f(a).to_vector<std::int32_t>());
  });
}

TEST(Fusion, UnusedArgumentsAndResults) {
  test::on_every_device([](const Queue& queue) {
    const auto a = values(queue, {1, 2});
    const auto f = jit([](const Tensor& x, const Tensor&) {
      const auto unused = exp(x);
      return x * 2.0 + 1.0;
    });
    expect_close(f(a, values(queue, {1, 2, 3})), values(queue, {3, 5}));
  });
}

TEST(Fusion, ConstantsOfTheClosureMayChange) {
  test::on_every_device([](const Queue& queue) {
    double factor = 2;
    const auto f = jit([&](const Tensor& x) { return (x + 1.0) * factor; });
    const auto a = values(queue, {1, 2});
    expect_close(f(a), values(queue, {4, 6}));
    factor = 5;
    const auto stats = during([&] { expect_close(f(a), values(queue, {10, 15})); });
    EXPECT_EQ(stats.compiled, 0u);  // numbers are arguments
    factor = kInf;
    expect_close(f(a), values(queue, {kInf, kInf}));
    factor = kNaN;
    expect_close(f(a), values(queue, {kNaN, kNaN}));
  });
}

TEST(Fusion, SeveralResultsAreOneKernel) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {50}, 1), b = Tensor::random(queue, {50}, 2);
    const auto f = [](const Tensor& x, const Tensor& z) {
      const auto s = x * z;
      return std::pair{relu(s + 1.0), tanh(s - x)};
    };
    const auto stats = during([&] {
      const auto [u, v] = jit(f)(a, b);
      const auto [eu, ev] = f(a, b);
      expect_close(u, eu);
      expect_close(v, ev);
    });
    EXPECT_EQ(stats.launches, 1u);
    const auto many = jit([](const Tensor& x) {
      return std::vector<Tensor>{x + 1.0, x * 2.0, x};
    })(a);
    expect_close(many[1], a * 2.0);
    EXPECT_TRUE(many[2].shares_storage(a));
    const auto three = jit([](const Tensor& x) { return std::tuple{x + 1.0, exp(x), x - 1.0}; })(a);
    expect_close(std::get<2>(three), a - 1.0);
  });
}

TEST(Fusion, SpecialValuesAndNumbers) {
  test::on_every_device([](const Queue& queue) {
    for (const auto dtype : {DType::float32, DType::float64}) {
      const auto x = values(queue, {kNaN, kInf, -kInf, 0, -0.0, 1e-8, 100, -100, 1e30}, dtype);
      const auto same = [&](auto&& f) { expect_close(jit(f)(x), f(x), tolerance_of(dtype)); };
      same([](const Tensor& v) { return softplus(v * 1.0) + 0.0; });
      same([](const Tensor& v) { return log1p(v * 1.0) * 1.0; });
      same([](const Tensor& v) { return maximum(v * 1.0, kNaN); });
      same([](const Tensor& v) { return minimum(v + 0.0, kInf) - v; });
      same([](const Tensor& v) { return clamp(v * 2.0, -kInf, 3.0) * 1.0; });
      same([](const Tensor& v) { return where(isnan(v * 1.0), -1.0, v) + 1.0; });
      same([](const Tensor& v) { return logical_and(gt(v, 0.0), isfinite(v)); });
      same([](const Tensor& v) { return gelu(relu(v)) + sign(v); });
    }
    const auto f = jit([](const Tensor& v) { return softplus(v + 0.0) * 1.0; });
    EXPECT_EQ(f(values(queue, {100})).item(), 100);
    const auto g = jit([](const Tensor& v) { return log1p(v * 1.0) + 0.0; });
    EXPECT_NEAR(g(values(queue, {1e-8})).item(), 1e-8, 1e-14);
  });
}

TEST(Fusion, OtherOpsSplitTheChain) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {4, 8}, 1), b = Tensor::random(queue, {4, 8}, 2);
    const auto check = [&](auto&& f, std::uint64_t launches) {
      Tensor y;
      const auto stats = during([&] { y = jit(f)(a, b); });
      expect_close(y, f(a, b), 1e-5);
      EXPECT_EQ(stats.launches, launches);
    };
    check(
        [](const Tensor& x, const Tensor& z) {
          const auto before = relu(x + z);
          const auto sums = cumsum(before, 1);
          return sums * 2.0 + x;
        },
        2);
    check(
        [](const Tensor& x, const Tensor& z) {
          const auto left = tanh(x * z);
          const auto product = matmul(left, z.transpose());
          return exp(product * 0.1) - 1.0;
        },
        2);
    check(
        [](const Tensor& x, const Tensor& z) {
          const auto part = relu(x + z).slice(1, 0, 4);
          return exp(part * 2.0);
        },
        2);
    check(
        [](const Tensor& x, const Tensor& z) {
          const auto turned = relu(x + z).transpose();
          return exp(turned * 2.0);
        },
        2);
  });
}

TEST(Fusion, ReshapesAreFusedWhereAllIsLinear) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {6, 4}, 1), b = Tensor::random(queue, {24}, 2);
    const auto f = [](const Tensor& x, const Tensor& z) {
      return relu((x * 2.0 - 1.0).reshape({24}) + z).reshape({2, 12}) * 3.0;
    };
    Tensor y;
    EXPECT_EQ(during([&] { y = jit(f)(a, b); }).launches, 1u);
    expect_close(y, f(a, b));
    const auto row = Tensor::random(queue, {4}, 3);
    const auto g = [&](const Tensor& x, const Tensor& z) {
      return relu((x * row - 1.0).reshape({24}) + z);
    };
    expect_close(jit(g)(a, b), g(a, b));
  });
}

TEST(Fusion, ShapesAndViews) {
  test::on_every_device([](const Queue& queue) {
    const std::vector<std::pair<Shape, Shape>> shapes = {{{}, {}},
                                                         {{1}, {}},
                                                         {{5}, {1}},
                                                         {{3, 1}, {1, 4}},
                                                         {{2, 3}, {3}},
                                                         {{2, 1, 3}, {4, 1}},
                                                         {{1, 1, 1}, {1}},
                                                         {{2, 3, 1, 5}, {3, 4, 1}},
                                                         {{2, 1, 2, 1, 2}, {3, 1, 3, 1}},
                                                         {{2, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2}},
                                                         {{0, 3}, {3}},
                                                         {{4, 0}, {1}},
                                                         {{1000}, {1000}},
                                                         {{65, 33}, {65, 1}}};
    for (const auto& [left, right] : shapes) {
      const auto a = Tensor::random(queue, left, 1), b = Tensor::random(queue, right, 2);
      const auto f = [](const Tensor& x, const Tensor& z) {
        return tanh(x - z * 2.0) * relu(x + 0.5) + z;
      };
      SCOPED_TRACE(left.to_string() + " " + right.to_string());
      expect_close(jit(f)(a, b), f(a, b));
    }
    const auto base = Tensor::random(queue, {6, 8, 4}, 5);
    const auto f = [](const Tensor& x, const Tensor& z) { return (x + z) * x - exp(z); };
    for (const auto& view :
         {base.transpose(0, 2), base.slice(1, 6, 1, -2), base.permute({1, 2, 0}),
          base.slice(0, Tensor::kBegin, Tensor::kEnd, -1), base.select(1, 3), base.narrow(2, 1, 2)})
      expect_close(jit(f)(view, view.clone()), f(view, view));
    const auto wide = base.slice(0, 0, 1).expand({5, 8, 4});
    expect_close(jit(f)(wide, wide), f(wide, wide));
  });
}

TEST(Fusion, MoreAxesThanKernelsHave) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {2, 3, 2, 3, 2, 3, 2, 3, 2, 3}, 1);
    const auto turned = a.permute({9, 0, 7, 2, 5, 4, 3, 6, 1, 8});
    const auto f = [](const Tensor& x) { return relu(x * 2.0 - 1.0) + x; };
    expect_close(jit(f)(turned), f(turned));
  });
}

TEST(Fusion, WritesInBetween) {
  test::on_every_device([](const Queue& queue) {
    const auto x = values(queue, {1, 2, 3});
    const auto f = jit([](const Tensor& v) {
      const auto before = v * 2.0 + 1.0;
      add_(v, 10.0);
      const auto after = v * 2.0 + 1.0;
      return std::pair{before, after};
    });
    const auto [before, after] = f(x);
    expect_close(before, values(queue, {3, 5, 7}));
    expect_close(after, values(queue, {23, 25, 27}));
    expect_close(x, values(queue, {11, 12, 13}));
    // Through a view, into a deferred value, and of a value that others depend on.
    const auto g = jit([](const Tensor& v) {
      const auto y = v + 1.0;
      const auto z = y * 2.0;
      fill_(y.slice(0, 0, 2), 7.0);
      return std::pair{y * 1.0, z};
    });
    const auto [y, z] = g(values(queue, {1, 2, 3}));
    expect_close(y, values(queue, {7, 7, 4}));
    expect_close(z, values(queue, {4, 6, 8}));
  });
}

TEST(Fusion, AValueWhoseInputChangedIsAnError) {
  test::on_every_device([](const Queue& queue) {
    const auto x = values(queue, {1, 2, 3});
    Tensor y;
    try {
      const FusionScope scope;
      y = x * 2.0 + 1.0;
      throw 1;
    } catch (int) {
    }
    add_(x, 1.0);  // outside of the scope nobody looks after y
    const auto message = test::message_of<ArgumentError>([&] { y.to_host(); });
    EXPECT_NE(message.find("[mul] an input was changed in place before"), std::string::npos)
        << message;
  });
}

TEST(Fusion, ValuesMayBeLookedAtInside) {
  test::on_every_device([](const Queue& queue) {
    const auto f = jit([](const Tensor& x) {
      const auto y = x * 2.0 + 1.0;
      const auto total = sum(y).item();
      return y / total;
    });
    expect_close(f(values(queue, {1, 2, 3})), values(queue, {3 / 15., 5 / 15., 7 / 15.}));
  });
}

TEST(Fusion, TensorsThatEscape) {
  test::on_every_device([](const Queue& queue) {
    Tensor kept, view;
    const auto f = jit([&](const Tensor& x) {
      kept = x * 2.0 + 1.0;
      view = kept.slice(0, 1, 3);
      return relu(kept) - x;
    });
    const auto y = f(values(queue, {1, -2, 3}));
    add_(y, 0.0);
    expect_close(kept, values(queue, {3, -3, 7}));
    expect_close(view, values(queue, {-3, 7}));
    expect_close(y, values(queue, {2, 2, 4}));
  });
}

TEST(Fusion, ExceptionsLeaveNoDamage) {
  test::on_every_device([](const Queue& queue) {
    const auto x = values(queue, {1, 2});
    Tensor kept;
    const auto f = jit([&](const Tensor& v) {
      kept = v * 3.0 + 1.0;
      if (kept.numel() == 2) return add(kept, Tensor::full(v.queue(), {5}, 1));  // shapes differ
      return kept;
    });
    EXPECT_THROW(f(x), ShapeError);
    expect_close(kept, values(queue, {4, 7}));
    EXPECT_EQ(during([&] { relu(x * 2.0); }).deferred, 0u);  // the scope has ended
  });
}

TEST(Fusion, NestedScopesFuseTogether) {
  test::on_every_device([](const Queue& queue) {
    const auto inner = jit([](const Tensor& x) { return relu(x * 2.0); });
    const auto outer = jit([&](const Tensor& x) { return inner(x + 1.0) - inner(x); });
    const auto x = values(queue, {1, -2, 3});
    const auto stats = during([&] { expect_close(outer(x), values(queue, {2, 0, 2})); });
    EXPECT_EQ(stats.launches, 1u);
  });
}

TEST(Fusion, Threads) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {3000}, 1);
    const auto f = [](const Tensor& v, double k) { return tanh(v * k + 1.0) - v; };
    std::vector<Tensor> results(8), shared(8);
    std::vector<std::thread> threads;
    Tensor waiting;
    {
      FusionScope scope;
      waiting = exp(x * 2.0) + 1.0;
      for (std::size_t i = 0; i < results.size(); ++i)
        threads.emplace_back([&, i] {
          results[i] = jit(f)(x, static_cast<double>(i));
          shared[i] = waiting * 1.0;  // computed by whoever comes first
        });
      for (auto& thread : threads) thread.join();
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      expect_close(results[i], f(x, static_cast<double>(i)));
      expect_close(shared[i], exp(x * 2.0) + 1.0);
    }
  });
}

TEST(Fusion, TwoQueues) {
  NETCL_NEED_OPENCL();
  const auto one = test::opencl_devices()[0].queue, two = manager().default_device("cpu").queue;
  const auto a = Tensor::random(one, {40}, 1), b = Tensor::random(two, {40}, 1);
  const auto f = [](const Tensor& x, const Tensor& z) {
    const auto left = relu(x * 2.0 - 1.0), right = relu(z * 2.0 - 1.0);
    return std::pair{left + right.to(left.queue()), right};
  };
  const auto [u, v] = jit(f)(a, b);
  const auto [eu, ev] = f(a, b);
  expect_close(u, eu);
  expect_close(v, ev);
}

TEST(Fusion, CastsRoundWhereTheyDid) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {100}, 1, Distribution::normal);
    const auto same = [&](auto&& f) { expect_close(jit(f)(x), f(x), 1e-12); };
    same([](const Tensor& v) { return cast(cast(v * 3.0, DType::float16), DType::float32) - v; });
    same([](const Tensor& v) { return (v * 3.0).astype(DType::float64) * 1.5; });
    same([](const Tensor& v) { return cast(cast(v, DType::float64) * 1.1, DType::float32) + v; });
    same([](const Tensor& v) { return cast(gt(v, 0.0), DType::float32) * v; });
    same([](const Tensor& v) { return (v * 0.5).astype(DType::float16); });
    same([](const Tensor& v) { return cast(v * 0.5, DType::int32); });
    same([](const Tensor& v) { return cast(v, DType::float64) * v.astype(DType::float64); });
  });
}

TEST(Fusion, LongChains) {
  test::on_every_device([](const Queue& queue) {
    const auto x = values(queue, {1, 2});
    const int length = queue.is_cpu() ? 3000 : 300;  // kernels of 128 statements
    const auto f = jit([&](const Tensor& v) {
      auto y = v;
      for (int i = 0; i < length; ++i) y = y + 1.0;
      return y;
    });
    expect_close(f(x), values(queue, {1.0 + length, 2.0 + length}));
    // Never looked at: freed without a deep recursion.
    const FusionScope scope;
    auto y = x;
    for (int i = 0; i < 200000; ++i) y = -y;
  });
}

TEST(Fusion, ManyInputsAreSplit) {
  test::on_every_device([](const Queue& queue) {
    std::vector<Tensor> inputs;
    for (std::uint64_t i = 0; i < 90; ++i) inputs.push_back(Tensor::random(queue, {3, 7}, i));
    const auto f = [](const std::vector<Tensor>& list) {
      auto y = list[0];
      for (std::size_t i = 1; i < list.size(); ++i) y = y * 0.5 + list[i];
      return y;
    };
    expect_close(jit(f)(inputs), f(inputs));
    for (auto& input : inputs) input = input.slice(0, 0, 1);  // broadcast: strides each
    inputs[0] = Tensor::random(queue, {3, 7}, 0);
    expect_close(jit(f)(inputs), f(inputs));
    // Many results.
    const auto g = [](const std::vector<Tensor>& list) {
      std::vector<Tensor> results;
      for (const auto& one : list) results.push_back((list[0] + one) * 2.0);
      return results;
    };
    const auto actual = jit(g)(inputs), expected = g(inputs);
    for (std::size_t i = 0; i < actual.size(); ++i) expect_close(actual[i], expected[i]);
  });
}

TEST(Fusion, EqualSubexpressionsAreComputedOnce) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {100}, 1);
    const auto f = [](const Tensor& v) { return exp(v * 2.0) + exp(v * 2.0) * exp(v * 2.0); };
    const auto source = explain(f, x).groups.at(0).source;
    std::size_t count = 0;
    for (auto at = source.find("exp("); at != std::string::npos; at = source.find("exp(", at + 1))
      ++count;
    EXPECT_EQ(count, 2u) << source;  // in the vector part and in the rest
    expect_close(jit(f)(x), f(x));
  });
}

TEST(Fusion, ReductionsEndAChain) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {17, 5, 33}, 1, Distribution::normal);
    const auto b = Tensor::random(queue, {5, 1}, 2);
    for (const auto& axes : std::vector<Axes>{{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}})
      for (const bool keepdim : {false, true}) {
        const auto f = [&](const Tensor& x, const Tensor& z) {
          const auto v = relu(x * z + 0.5);
          return std::vector{sum(v, axes, keepdim)};
        };
        const auto g = [&](const Tensor& x, const Tensor& z) {
          return std::vector{mean(exp(x) * z, axes, keepdim), max(x * z - 1.0, axes, keepdim),
                             min(tanh(x) + z, axes, keepdim)};
        };
        expect_close(jit(f)(a, b)[0], f(a, b)[0], 1e-5);
        const auto actual = jit(g)(a, b), expected = g(a, b);
        for (std::size_t i = 0; i < actual.size(); ++i)
          expect_close(actual[i], expected[i], i == 0 ? 1e-5 : 1e-6);
      }
  });
}

TEST(Fusion, AReducedChainIsNotStored) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {40000}, 1), b = Tensor::random(queue, {40000}, 2);
    const auto f = [](const Tensor& x, const Tensor& z) { return mean(square(x - z) * 0.5); };
    const auto explained = explain(f, a, b);
    ASSERT_EQ(explained.groups.size(), 1u);
    EXPECT_EQ(explained.groups[0].ops, (std::vector<std::string>{"sub", "square", "mul", "mean"}));
    EXPECT_EQ(explained.groups[0].bytes_written, 4u);
    EXPECT_NE(explained.groups[0].source.find("fused_reduce"), std::string::npos);
    expect_close(jit(f)(a, b), f(a, b), 1e-5);
    EXPECT_EQ(jit(f)(a, b).item(), jit(f)(a, b).item());
    // Somebody else needs the values: they are stored, and reduced from there.
    const auto both = jit([](const Tensor& x, const Tensor& z) {
      const auto v = square(x - z) * 0.5;
      return std::pair{sum(v), v};
    })(a, b);
    expect_close(both.first, sum(square(a - b) * 0.5), 1e-5);
    expect_close(both.second, square(a - b) * 0.5);
  });
}

TEST(Fusion, ReductionsKeepNaN) {
  test::on_every_device([](const Queue& queue) {
    for (const auto at : {0, 17, 99}) {
      std::vector<double> list(100, 1.0);
      list[static_cast<std::size_t>(at)] = kNaN;
      const auto x = values(queue, list);
      const auto f = jit([](const Tensor& v) {
        return std::tuple{max(v * 2.0), min(v - 1.0), sum(v + 1.0)};
      });
      EXPECT_TRUE(std::isnan(std::get<0>(f(x)).item()));
      EXPECT_TRUE(std::isnan(std::get<1>(f(x)).item()));
      EXPECT_TRUE(std::isnan(std::get<2>(f(x)).item()));
    }
    const auto low = jit([](const Tensor& v) { return max(v * kInf); });
    EXPECT_EQ(low(values(queue, {-1, -2})).item(), -kInf);
  });
}

TEST(Fusion, SumsAreAsPreciseAsThoseOfTheOp) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {1 << 20}, 0.1);
    const auto columns = Tensor::full(queue, {1 << 14, 3}, 0.1);
    const auto check = [](const Tensor& from, const Axes& axes, double exact) {
      const auto f = [&](const Tensor& v) { return sum(v + v, axes).reshape({-1}).select(0, 0); };
      const auto error = [&](double actual) { return std::fabs(actual - exact) / exact; };
      // Adding up one by one would be off by 1e-3.
      EXPECT_LE(error(jit(f)(from).item()), 2 * error(f(from).item()) + 2e-6);
    };
    check(x, {}, static_cast<double>(0.1f) * 2 * (1 << 20));
    check(columns, {0}, static_cast<double>(0.1f) * 2 * (1 << 14));
  });
}

TEST(Fusion, ProductsTakeInBiasAndActivation) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {3, 4, 16}, 1, Distribution::normal);
    const auto w = Tensor::random(queue, {16, 8}, 2, Distribution::normal);
    const auto b = Tensor::random(queue, {8}, 3);
    const auto check = [&](auto&& f, const std::vector<std::string>& ops) {
      const auto explained = explain(f);
      ASSERT_FALSE(explained.groups.empty());
      EXPECT_EQ(explained.groups[0].ops, ops) << explained.to_string();
      expect_close(jit(f)(), f(), 1e-5);
    };
    check([&] { return relu(matmul(x, w) + b); }, {"matmul", "add", "relu"});
    check([&] { return tanh(b + matmul(x, w)); }, {"matmul", "add", "tanh"});
    check([&] { return gelu(matmul(x, w)); }, {"matmul", "gelu"});
    check([&] { return matmul(x, w) + b.reshape({1, 1, 8}); }, {"matmul", "add"});
    check([&] { return sigmoid(linear(x, w.transpose()) + b); }, {"linear", "add", "sigmoid"});
    check([&] { return relu(linear(x, w.transpose(), b, Activation::tanh)); }, {"linear"});
    // No bias: one number per row, or a whole matrix.
    check([&] { return matmul(x, w) + b.reshape({8, 1}).slice(0, 0, 4); }, {"matmul"});
    check([&] { return matmul(x, w) + matmul(x, w); }, {"matmul"});
    const auto image = Tensor::random(queue, {2, 3, 6, 6}, 4, Distribution::normal);
    const auto filter = Tensor::random(queue, {4, 3, 3, 3}, 5, Distribution::normal);
    const auto bias = Tensor::random(queue, {4}, 6);
    check([&] { return relu(bias_add(conv2d(image, filter), bias)); }, {"conv2d", "add", "relu"});
    check(
        [&] {
          return silu(conv2d(image, filter) + bias.reshape({1, 4, 1, 1}));
        },
        {"conv2d", "add", "silu"});
    check([&] { return relu(conv2d(image, filter, bias)); }, {"conv2d", "relu"});
    check([&] { return conv2d(image, filter) + bias.reshape({4, 1}); }, {"conv2d"});
  });
}

TEST(Fusion, ProductsKeepWhatOthersNeed) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {4, 16}, 1), w = Tensor::random(queue, {16, 8}, 2);
    const auto b = Tensor::random(queue, {8}, 3);
    const auto [z, y] = jit([&] {
      const auto product = matmul(x, w) + b;
      return std::pair{product, relu(product - 1.0)};
    })();
    expect_close(z, matmul(x, w) + b, 1e-5);
    expect_close(y, relu(matmul(x, w) + b - 1.0), 1e-5);
  });
}

// ---- with a tape

TEST(Fusion, GradientsOfSeveralInputsAreOneKernel) {
  test::on_every_device([](const Queue& queue) {
    auto a = Tensor::random(queue, {500}, 1), b = Tensor::random(queue, {500}, 2);
    a.set_requires_grad();
    b.set_requires_grad();
    const auto f = [&] {
      Tape tape;
      const auto y = tanh(a * b + 1.0) * a;
      return tape.gradient(y, {a, b}, Tensor::full(queue, {500}, 1));
    };
    const auto expected = f();
    std::vector<Tensor> actual;
    const auto stats = during([&] { actual = jit(f)(); });
    EXPECT_EQ(stats.launches, 1u);
    for (std::size_t i = 0; i < actual.size(); ++i) expect_close(actual[i], expected[i], 1e-5);
  });
}

TEST(Fusion, SavedValuesAreComputedAgainInBackward) {
  test::on_every_device([](const Queue& queue) {
    auto a = Tensor::random(queue, {500}, 1);
    a.set_requires_grad();
    Tape tape;
    Tensor loss;
    // One kernel, and nothing stored but the sum.
    const auto explained = explain([&] { loss = sum(exp(sin(a * 2.0))); });
    ASSERT_EQ(explained.groups.size(), 1u) << explained.to_string();
    EXPECT_EQ(explained.groups[0].bytes_written, 4u);
    tape.backward(loss);
    const auto x = a.detach();
    expect_close(a.grad(), exp(sin(x * 2.0)) * cos(x * 2.0) * 2.0, 1e-5);
  });
}

TEST(Fusion, TrainingInAJittedStep) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {32, 4}, 1, Distribution::normal);
    const auto target = sum(x, {1}, true) * 0.5 + 0.25;
    const auto train = [&](bool fused) {
      auto w = Tensor::random(queue, {4, 8}, 2, Distribution::normal).set_requires_grad();
      auto b = Tensor::from_shape(queue, {8}).set_requires_grad();
      auto v = Tensor::random(queue, {8, 1}, 3, Distribution::normal).set_requires_grad();
      const auto step = [&] {
        Tensor loss;
        {
          Tape tape;
          loss = mean(square(matmul(tanh(matmul(x, w) + b), v) - target));
          tape.backward(loss);
        }
        const no_grad nothing_is_recorded;
        for (auto* parameter : {&w, &b, &v}) {
          sub_(*parameter, parameter->grad() * 0.05);
          parameter->set_grad({});
        }
        return loss.detach();
      };
      std::vector<double> losses;
      for (int i = 0; i < 20; ++i) losses.push_back(fused ? jit(step)().item() : step().item());
      return losses;
    };
    const auto plain = train(false), fused = train(true);
    EXPECT_LT(plain.back(), plain.front() / 2);
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-4) << i;
  });
}

TEST(Fusion, KernelTextIsTheSameInEveryProcess) {
  if (const auto role = test::child_role()) {
    test::on_every_device([&](const Queue& queue) {
      const auto a = Tensor::random(queue, {100}, 1), b = Tensor::random(queue, {10, 10}, 2);
      if (!queue.is_cpu() && *role == "again") {
        const auto junk = Tensor::random(queue, {64}, 9);  // other addresses than in the first
        jit([](const Tensor& x) { return exp(x * 7.0); })(junk);
      }
      const auto compiled = program_cache_stats().compiled;
      jit(chain)(a, a, a);
      jit([](const Tensor& x) { return sum(leaky_relu(x * 2.0, 0.3)); })(b);
      if (*role == "again") EXPECT_EQ(program_cache_stats().compiled, compiled);
    });
    return;
  }
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  const test::ScopedEnv cache("NETCL_CACHE_DIR", (dir / "cache").c_str()),
      binaries("NETCL_CACHE_BINARIES", "1");
  EXPECT_EQ(test::ChildProcess("first").wait(), 0);
  EXPECT_EQ(test::ChildProcess("again").wait(), 0);
}

}  // namespace
}  // namespace netcl
