// Samples of matrix products: sizes around every tile, vectors, batches, nothing at all.
#include "ops/matmul/samples.h"

#include <cmath>

#include "base/format.h"

namespace netcl {
namespace {

std::string text_of(const Shape& shape) { return shape.empty() ? "scalar" : join(shape, "x"); }

OpSample product(const Shape& a, const Shape& b) {
  return {text_of(a) + "+" + text_of(b), {{a}, {b}}};
}

}  // namespace

std::vector<OpSample> matmul_samples() {
  std::vector<OpSample> samples;
  struct Sizes {
    std::int64_t M, K, N;
  };
  // Ones, primes, exact tiles, one less and one more.
  for (const auto& [M, K, N] :
       {Sizes{1, 1, 1},     Sizes{1, 1, 7},     Sizes{5, 1, 1},    Sizes{2, 3, 4},
        Sizes{7, 5, 3},     Sizes{8, 8, 8},     Sizes{16, 16, 16}, Sizes{17, 19, 23},
        Sizes{31, 33, 29},  Sizes{32, 8, 32},   Sizes{33, 9, 31},  Sizes{64, 16, 64},
        Sizes{65, 17, 63},  Sizes{63, 64, 65},  Sizes{1, 300, 65}, Sizes{1, 31, 128},
        Sizes{67, 129, 1},  Sizes{40, 1031, 1}, Sizes{1, 2053, 1}, Sizes{9, 127, 33},
        Sizes{3, 257, 100}, Sizes{100, 2, 100}, Sizes{128, 64, 96}})
    samples.push_back(product({M, K}, {K, N}));
  // Panels that several work-items share; strips of many columns, the last one not full.
  for (const auto& [M, K, N] : {Sizes{150, 70, 170}, Sizes{1, 9, 1100}}) {
    samples.push_back(product({M, K}, {K, N}));
    samples.back().gradient = false;  // the smaller ones check it
  }
  samples.push_back(product({5}, {5}));
  samples.push_back(product({5}, {5, 3}));
  samples.push_back(product({4, 5}, {5}));
  samples.push_back(product({2, 3, 5}, {5}));
  samples.push_back(product({6}, {3, 6, 2}));
  samples.push_back(product({3, 7, 5}, {5, 4}));
  samples.push_back(product({3, 7, 5}, {3, 5, 4}));
  samples.push_back(product({1, 7, 5}, {3, 5, 4}));
  samples.push_back(product({7, 5}, {3, 5, 4}));
  samples.push_back(product({2, 1, 4, 3}, {3, 3, 5}));
  samples.push_back(product({2, 1, 3, 4, 3}, {1, 2, 1, 3, 5}));
  samples.push_back(product({4, 3, 17, 6}, {4, 3, 6, 9}));
  samples.push_back(product({0, 3}, {3, 4}));
  samples.push_back(product({3, 4}, {4, 0}));
  samples.push_back(product({3, 0}, {0, 4}));
  samples.push_back(product({0, 3, 2}, {0, 2, 3}));
  samples.push_back(product({2, 3, 0}, {0, 2}));
  auto special = product({9, 3}, {3, 11});
  special.id = "special";
  // No huge numbers: whether their sum overflows depends on the order.
  for (auto& input : special.inputs) {
    input.fill = Fill::values;
    input.values = {0.5, -1, 2, NAN, 1, 3, INFINITY, 0.25, 0, -2, 7, -INFINITY, 1, 1, -0.0, 4, 9};
  }
  special.gradient = false;
  special.dtypes = {DType::float32, DType::float64};
  samples.push_back(special);
  // Small integers: every sum is exact, also in half precision.
  auto exact = product({23, 40}, {40, 19});
  exact.id = "exact";
  for (auto& input : exact.inputs) input = {input.shape, Fill::integers, -3, 3};
  samples.push_back(exact);
  return samples;
}

std::vector<OpSample> matmul_tuning() {
  return {product({256, 256}, {256, 256}), product({1024, 1024}, {1024, 1024}),
          product({64, 1024}, {1024, 4096}), product({1, 1024}, {1024, 1024}),
          product({1024, 1024}, {1024, 1})};
}

std::vector<OpSample> linear_samples() {
  std::vector<OpSample> samples;
  const auto add = [&](const Shape& x, std::int64_t out, bool bias, std::int64_t activation) {
    const auto in = x[x.rank() - 1];
    OpSample sample{
        fmt::format("{}_out{}{}_act{}", text_of(x), out, bias ? "_bias" : "", activation),
        {{x}, {Shape{out, in}}, {Shape{out}}}};
    sample.inputs[2].present = bias;
    sample.attributes.set("activation", activation);
    samples.push_back(std::move(sample));
  };
  for (const bool bias : {false, true}) {
    const std::int64_t activation = bias ? 1 : 0;  // other pairs below: each is a kernel to compile
    add({1, 1}, 1, bias, activation);
    add({7, 5}, 3, bias, activation);
    add({64, 33}, 10, bias, activation);
    add({2, 3, 17}, 19, bias, activation);
    add({13}, 11, bias, activation);
    add({1, 129}, 65, bias, activation);
    add({5, 300}, 1, bias, activation);
    add({33, 40}, 64, bias, activation);
    add({31, 16}, 17, bias, activation);
    add({3, 63}, 5, bias, activation);
    add({0, 4}, 3, bias, activation);
    add({4, 0}, 3, bias, activation);
  }
  for (std::int64_t activation = 2; activation < 6; ++activation) {
    add({17, 23}, 32, true, activation);
    samples.back().dtypes = {DType::float32};
    add({1, 23}, 31, true, activation);
    samples.back().dtypes = {DType::float32};
  }
  // Each pair of bias and activation is a kernel to compile per variant and dtype: one has them
  // all.
  const auto add_residual = [&](const Shape& x, std::int64_t out, bool bias,
                                std::int64_t activation, std::vector<DType> dtypes = {}) {
    add(x, out, bias, activation);
    auto& sample = samples.back();
    auto sizes = x.sizes();
    sizes.back() = out;
    sample.id += "_residual";
    sample.inputs.push_back({Shape(std::move(sizes))});
    sample.dtypes = std::move(dtypes);
  };
  for (const auto& [x, out] :
       {std::pair{Shape{17, 23}, 32}, std::pair{Shape{2, 3, 17}, 19}, std::pair{Shape{1, 40}, 31},
        std::pair{Shape{9, 33}, 1}, std::pair{Shape{13}, 13}, std::pair{Shape{4, 0}, 3},
        std::pair{Shape{0, 4}, 3}})
    add_residual(x, out, true, 1);
  add_residual({33, 7}, 12, false, 0, {DType::float32});
  add_residual({7, 5}, 1, false, 0, {DType::float32});
  add_residual({5, 11}, 20, true, 2, {DType::float32});
  return samples;
}

}  // namespace netcl
