#include "bench/op_work.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "bench/work.h"
#include "netcl/jit.h"
#include "netcl/ops.h"

namespace netcl::bench {
namespace {

using Maker = Work (*)(const Queue& queue, const Shape& shape);
using Unary = Tensor (*)(const Tensor& x);

constexpr double kWide = 8;  // inputs of -4 to 4: every part of an activation
constexpr double kDropped = 0.25;
constexpr std::int64_t kTop = 5, kEmbedded = 4096, kGroups = 8;
constexpr ops::Pair kWindow{3, 3};
const ops::PoolOptions kPool{{2, 2}, {1, 1}, true};

// ---- one input, one result
Tensor exp(const Tensor& x) { return ops::exp(x); }
Tensor tanh(const Tensor& x) { return ops::tanh(x); }
Tensor gelu(const Tensor& x) { return ops::gelu(x); }
Tensor to_half(const Tensor& x) { return ops::cast(x, DType::float16); }
Tensor transposed(const Tensor& x) { return x.transpose().contiguous(); }
Tensor channels_last(const Tensor& x) { return x.permute({0, 2, 3, 1}).contiguous(); }
Tensor column_sum(const Tensor& x) { return ops::sum(x, {0}); }
Tensor channel_mean(const Tensor& x) { return ops::mean(x, {0, 2, 3}); }
Tensor row_max(const Tensor& x) { return ops::max(x, {-1}); }
Tensor row_var(const Tensor& x) { return ops::var(x, {-1}); }
Tensor argmax(const Tensor& x) { return ops::argmax(x); }
Tensor topk(const Tensor& x) { return ops::topk(x, kTop).first; }
Tensor cumsum(const Tensor& x) { return ops::cumsum(x); }
Tensor channel_softmax(const Tensor& x) { return ops::softmax(x, 1); }
Tensor softmax(const Tensor& x) { return ops::softmax(x); }
Tensor max_pool(const Tensor& x) { return ops::max_pool2d(x, kWindow, kPool); }
Tensor avg_pool(const Tensor& x) { return ops::avg_pool2d(x, kWindow, kPool); }
Tensor global_pool(const Tensor& x) { return ops::adaptive_avg_pool2d(x, {1, 1}); }
Tensor bilinear(const Tensor& x) {
  return ops::upsample_bilinear(x, {2 * x.size(2), 2 * x.size(3)});
}
Tensor nearest(const Tensor& x) { return ops::upsample_nearest(x, {2 * x.size(2), 2 * x.size(3)}); }
Tensor padded(const Tensor& x) { return ops::pad(x, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}); }

template <Unary op>
Work of_one(const Queue& queue, const Shape& shape) {
  return work([x = input(queue, shape, 1, kWide)] { return op(x); });
}

template <Unary op>
Work gradient_of_one(const Queue& queue, const Shape& shape) {
  const auto x = input(queue, shape, 1, kWide);
  return gradient_work(x, op);
}

// Of random numbers, which every library draws in its own way: how many are zero, and how wide they
// are spread.
std::vector<double> statistics_of(const Tensor& result) {
  double zeros = 0, squares = 0;
  for (const double value : result.to_vector<float>())
    zeros += value == 0 ? 1 : 0, squares += value * value;
  const auto count = static_cast<double>(result.numel());
  return {std::round(100 * zeros / count), std::round(10 * squares / count)};
}

Work dropout(const Queue& queue, const Shape& shape) {
  return work([x = input(queue, shape, 1, kWide)] { return ops::dropout(x, kDropped, 1); },
              statistics_of);
}

Work normal(const Queue& queue, const Shape& shape) {
  return work([=] { return Tensor::random(queue, shape, 1, Distribution::normal); }, statistics_of);
}

// ---- several inputs
struct Normed {
  Tensor x, scale, shift;
  Normed(const Queue& queue, const Shape& shape, std::int64_t features)
      : x(input(queue, shape, 1, kWide)),
        scale(input(queue, {features}, 2)),
        shift(input(queue, {features}, 3)) {}
};

Work batch_norm(const Queue& queue, const Shape& shape) {
  return work([in = Normed(queue, shape, shape[1])] {
    return ops::batch_norm_train(in.x, in.scale, in.shift).y;
  });
}

Work batch_norm_gradient(const Queue& queue, const Shape& shape) {
  const Normed in(queue, shape, shape[1]);
  return gradient_work(
      in.x, [&](const Tensor& x) { return ops::batch_norm_train(x, in.scale, in.shift).y; });
}

Work layer_norm_gradient(const Queue& queue, const Shape& shape) {
  const Normed in(queue, shape, shape[1]);
  return gradient_work(in.x,
                       [&](const Tensor& x) { return ops::layer_norm(x, in.scale, in.shift); });
}

Work group_norm(const Queue& queue, const Shape& shape) {
  return work([in = Normed(queue, shape, shape[1])] {
    return ops::group_norm(in.x, kGroups, in.scale, in.shift);
  });
}

Work channel_bias(const Queue& queue, const Shape& shape) {
  const auto bias = input(queue, {shape[1], 1, 1}, 2);
  return work([x = input(queue, shape, 1, kWide), bias] { return ops::add(x, bias); });
}

// Two ops that compilers join, as the chain is.
Work where(const Queue& queue, const Shape& shape) {
  const auto x = input(queue, shape, 1, kWide), y = input(queue, shape, 2);
  return work([joined = jit([=] { return ops::where(ops::gt(x, y), x, y); })] { return joined(); });
}

Work concat(const Queue& queue, const Shape& shape) {
  const auto x = input(queue, shape, 1), y = input(queue, shape, 2);
  return work([=] { return ops::concat({x, y}, 1); });
}

// Rows in an order that no cache foresees.
Tensor places(const Queue& queue, std::int64_t count, std::int64_t rows) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i * 7919 % rows);
  return Tensor::from_host(queue, values);
}

Work embedding(const Queue& queue, const Shape& shape) {
  const auto table = input(queue, shape, 1), indices = places(queue, kEmbedded, shape[0]);
  return work([=] { return ops::embedding(indices, table); });
}

Work embedding_gradient(const Queue& queue, const Shape& shape) {
  const auto table = input(queue, shape, 1), indices = places(queue, kEmbedded, shape[0]);
  return gradient_work(table, [&](const Tensor& of) { return ops::embedding(indices, of); });
}

Work cross_entropy(const Queue& queue, const Shape& shape) {
  const auto x = input(queue, shape, 1, kWide), labels = places(queue, shape[0], shape[1]);
  return work([=] { return ops::cross_entropy(x, labels); });
}

Work attention(const Queue& queue, const Shape& shape) {
  const auto q = input(queue, shape, 1, kWide), k = input(queue, shape, 2, kWide),
             v = input(queue, shape, 3, kWide);
  return work([=] { return ops::scaled_dot_product_attention(q, k, v); });
}

Work attention_gradient(const Queue& queue, const Shape& shape) {
  const auto q = input(queue, shape, 1, kWide), k = input(queue, shape, 2, kWide),
             v = input(queue, shape, 3, kWide);
  return gradient_work(q,
                       [&](const Tensor& x) { return ops::scaled_dot_product_attention(x, k, v); });
}

const std::map<std::string, Maker, std::less<>>& makers() {
  static const std::map<std::string, Maker, std::less<>> all = {
      {"exp", of_one<exp>},
      {"tanh", of_one<tanh>},
      {"gelu", of_one<gelu>},
      {"gelu_backward", gradient_of_one<gelu>},
      {"to_half", of_one<to_half>},
      {"transpose", of_one<transposed>},
      {"channels_last", of_one<channels_last>},
      {"dropout", dropout},
      {"normal", normal},
      {"channel_bias", channel_bias},
      {"where", where},
      {"concat", concat},
      {"pad", of_one<padded>},
      {"column_sum", of_one<column_sum>},
      {"channel_mean", of_one<channel_mean>},
      {"row_max", of_one<row_max>},
      {"row_var", of_one<row_var>},
      {"argmax", of_one<argmax>},
      {"topk", of_one<topk>},
      {"cumsum", of_one<cumsum>},
      {"channel_softmax", of_one<channel_softmax>},
      {"softmax_backward", gradient_of_one<softmax>},
      {"cross_entropy", cross_entropy},
      {"layer_norm_backward", layer_norm_gradient},
      {"group_norm", group_norm},
      {"batch_norm", batch_norm},
      {"batch_norm_backward", batch_norm_gradient},
      {"max_pool", of_one<max_pool>},
      {"max_pool_backward", gradient_of_one<max_pool>},
      {"avg_pool", of_one<avg_pool>},
      {"global_pool", of_one<global_pool>},
      {"bilinear", of_one<bilinear>},
      {"bilinear_backward", gradient_of_one<bilinear>},
      {"nearest", of_one<nearest>},
      {"embedding", embedding},
      {"embedding_backward", embedding_gradient},
      {"attention", attention},
      {"attention_backward", attention_gradient},
  };
  return all;
}

Shape shape_of(const nlohmann::json& parameters) {
  const auto found = parameters.find("shape");
  check<ArgumentError>(found != parameters.end() && found->is_array() && !found->empty(),
                       "[bench] 'shape' must be a list of sizes: {}", parameters.dump());
  std::vector<std::int64_t> sizes;
  for (const auto& size : *found) {
    check<ArgumentError>(size.is_number_integer() && size.get<std::int64_t>() > 0,
                         "[bench] the sizes must be positive integers: {}", parameters.dump());
    sizes.push_back(size.get<std::int64_t>());
  }
  return Shape(sizes);
}

}  // namespace

Work op_work(const Queue& queue, const nlohmann::json& parameters) {
  const auto name = parameters.value("op", "");
  const auto found = makers().find(name);
  check<ArgumentError>(found != makers().end(), "[bench] this op is not known: {}",
                       parameters.dump());
  return found->second(queue, shape_of(parameters));
}

}  // namespace netcl::bench
