// What is measured. Sizes come in neighbours too, so that a kernel that only likes powers of two
// is seen.
#include "bench/cases.h"

#include <nlohmann/json.hpp>

#include "base/format.h"

namespace netcl::bench {
namespace {

using nlohmann::json;

constexpr double kFloat = 4;
const char* const kTorch = "PyTorch";

struct Convolution {
  std::int64_t n, c, size, k, filter, stride, groups;
};

Case matmul(std::int64_t m, std::int64_t n, std::int64_t k, double goal) {
  Case one;
  one.id = m == n && n == k ? fmt::format("matmul {}", m) : fmt::format("matmul {}x{}x{}", m, n, k);
  one.group = "matmul";
  one.parameters = json{{"kind", "matmul"}, {"m", m}, {"n", n}, {"k", k}}.dump();
  one.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  one.bytes = kFloat * static_cast<double>(m * k + k * n + m * n);
  one.goal = goal;
  return one;
}

// direction: "conv2d", "conv2d_data", "conv2d_weights"
Case convolution(const char* direction, const Convolution& v, double goal) {
  const auto padding = v.filter / 2;
  const auto out = (v.size + 2 * padding - v.filter) / v.stride + 1;
  Case one;
  one.group = direction;
  one.id = fmt::format("{} {}x{}x{}x{} k{} {}x{}{}{}", direction, v.n, v.c, v.size, v.size, v.k,
                       v.filter, v.filter, v.stride > 1 ? fmt::format(" s{}", v.stride) : "",
                       v.groups > 1 ? " depthwise" : "");
  one.parameters = json{{"kind", direction},  {"n", v.n},           {"c", v.c},
                        {"size", v.size},     {"k", v.k},           {"filter", v.filter},
                        {"stride", v.stride}, {"padding", padding}, {"groups", v.groups}}
                       .dump();
  const auto filters = static_cast<double>(v.k * (v.c / v.groups) * v.filter * v.filter);
  one.flops = 2 * filters * static_cast<double>(v.n * out * out);
  one.bytes =
      kFloat * (static_cast<double>(v.n * v.c * v.size * v.size + v.n * v.k * out * out) + filters);
  one.goal = goal;
  one.against = kTorch;
  return one;
}

// Element-wise work and rows: `passes` arrays of n elements cross the memory.
Case streaming(std::string id, json parameters, double elements, double passes, double goal,
               double bandwidth_goal) {
  Case one;
  one.id = std::move(id);
  one.group = "memory";
  one.parameters = parameters.dump();
  one.bytes = kFloat * elements * passes;
  one.goal = goal;
  one.against = kTorch;
  one.bandwidth_goal = bandwidth_goal;
  return one;
}

Case elementwise(const char* kind, std::int64_t n, double passes, double bandwidth_goal) {
  const auto size = n % (1 << 20) == 0 ? fmt::format("{}M", n >> 20) : std::to_string(n);
  return streaming(fmt::format("{} {}", kind, size), {{"kind", kind}, {"n", n}},
                   static_cast<double>(n), passes, 1, bandwidth_goal);
}

Case rows(const char* kind, std::int64_t count, std::int64_t length, double bandwidth_goal) {
  return streaming(fmt::format("{} {}x{}", kind, count, length),
                   {{"kind", kind}, {"rows", count}, {"columns", length}},
                   static_cast<double>(count * length), 2, 1, bandwidth_goal);
}

Case network(const char* kind, const char* model, std::int64_t batch, double flops, double goal) {
  Case one;
  one.id = fmt::format("{} {} batch {}", kind, model, batch);
  one.group = "networks";
  one.parameters = json{{"kind", kind}, {"model", model}, {"batch", batch}}.dump();
  one.flops = flops * static_cast<double>(batch);
  one.goal = goal;
  one.against = kTorch;
  return one;
}

Case launches(std::int64_t count) {
  Case one;
  one.id = fmt::format("launches {}", count);
  one.group = "launches";
  one.parameters = json{{"kind", "launches"}, {"count", count}}.dump();
  return one;
}

// One op on a tensor of this shape (op_work.cpp says what each name is). `elements`: what crosses
// the memory at least.
Case op(const char* name, const std::vector<std::int64_t>& shape, double elements) {
  auto one = streaming(fmt::format("{} {}", name, join(shape, "x")),
                       {{"kind", "op"}, {"op", name}, {"shape", shape}}, elements, 1, 1, 0);
  one.group = "ops";
  return one;
}

// What a network does beside products: shapes of its layers, results of at most 16 MB, for which
// every library reuses memory.
std::vector<Case> op_cases() {
  constexpr double kM = 1 << 20, kMaps = 8 * 64 * 56 * 56, kLarge = 8 * 32 * 112 * 112,
                   kRows = 4096 * 1000;
  const std::vector<std::int64_t> vector{1 << 22}, square{2048, 2048}, maps{8, 64, 56, 56},
      large{8, 32, 112, 112}, rows{4096, 1000}, segments{2, 21, 256, 256}, table{32768, 256},
      heads{2, 8, 512, 64};
  std::vector<Case> all;
  for (const char* name : {"exp", "tanh", "gelu", "dropout"})
    all.push_back(op(name, vector, 8 * kM));
  all.push_back(op("gelu_backward", vector, 12 * kM));
  all.push_back(op("normal", vector, 4 * kM));
  all.push_back(op("to_half", vector, 6 * kM));
  all.push_back(op("where", vector, 12 * kM));
  all.push_back(op("transpose", square, 8 * kM));
  all.push_back(op("column_sum", square, 4 * kM));
  for (const char* name : {"channels_last", "channel_bias", "pad", "batch_norm", "group_norm"})
    all.push_back(op(name, maps, 2 * kMaps));
  all.push_back(op("batch_norm_backward", maps, 3 * kMaps));
  all.push_back(op("concat", maps, 4 * kMaps));
  for (const char* name : {"bilinear", "nearest"}) all.push_back(op(name, maps, 5 * kMaps));
  all.push_back(op("bilinear_backward", maps, 5 * kMaps));
  for (const char* name : {"channel_mean", "global_pool"}) all.push_back(op(name, maps, kMaps));
  for (const char* name : {"max_pool", "avg_pool"}) all.push_back(op(name, large, 1.25 * kLarge));
  all.push_back(op("max_pool_backward", large, 2.25 * kLarge));
  for (const char* name : {"row_max", "row_var", "argmax", "topk", "cross_entropy"})
    all.push_back(op(name, rows, kRows));
  all.push_back(op("cumsum", rows, 2 * kRows));
  for (const char* name : {"softmax_backward", "layer_norm_backward"})
    all.push_back(op(name, rows, 3 * kRows));
  all.push_back(op("channel_softmax", segments, 2.0 * 2 * 21 * 256 * 256));
  for (const char* name : {"embedding", "embedding_backward"})
    all.push_back(op(name, table, 2.0 * 4096 * 256));
  all.push_back(op("attention", heads, 0));
  all.back().flops = 4.0 * 2 * 8 * 512 * 512 * 64;
  all.push_back(op("attention_backward", heads, 0));
  all.back().flops = 10.0 * 2 * 8 * 512 * 512 * 64;
  return all;
}

constexpr Convolution kConv64{8, 64, 56, 64, 3, 1, 1}, kConv256{8, 256, 14, 256, 3, 1, 1},
    kPointwise{8, 64, 56, 256, 1, 1, 1}, kStem{8, 3, 224, 64, 7, 2, 1},
    kDepthwise{8, 64, 56, 64, 3, 1, 64};
// Multiplications and additions of one image: forward, and three times that for a step.
constexpr double kMlp = 2 * (784 * 256 + 256 * 10), kResnet18 = 3.63e9,
                 kCnn = 2.0 * (9 * 16 * 784 + 9 * 16 * 32 * 196 + 1568 * 10);

std::vector<Case> goals() {
  std::vector<Case> all;
  for (const std::int64_t n : {64, 128}) all.push_back(matmul(n, n, n, 0.8));
  for (const std::int64_t n : {256, 512, 1024, 2048}) all.push_back(matmul(n, n, n, 0.95));
  all.push_back(matmul(64, 1024, 4096, 0.95));
  all.push_back(matmul(4096, 64, 64, 0.95));
  all.push_back(matmul(128, 256, 784, 0.95));
  all.push_back(matmul(1, 1024, 1024, 0.8));
  for (const auto& one : {kConv64, kConv256}) all.push_back(convolution("conv2d", one, 1.6));
  for (const auto& one : {kPointwise, kStem, kDepthwise})
    all.push_back(convolution("conv2d", one, 1));
  for (const char* direction : {"conv2d_data", "conv2d_weights"})
    for (const auto& one : {kConv64, kConv256, kPointwise, kStem, kDepthwise})
      all.push_back(convolution(direction, one, 1));
  all.push_back(elementwise("add", 1 << 20, 3, 0));  // stays in the caches
  all.push_back(elementwise("add", 1 << 24, 3, 0.9));
  all.push_back(elementwise("chain", 1 << 24, 4, 0.9));
  all.push_back(elementwise("sum", 1 << 24, 1, 0.9));
  all.back().reads_only = true;
  all.push_back(rows("softmax", 4096, 1000, 0));
  all.push_back(rows("layer_norm", 4096, 768, 0));
  for (auto& one : op_cases()) all.push_back(std::move(one));
  all.push_back(network("train", "mlp", 64, 3 * kMlp, 1.3));
  all.push_back(network("train", "cnn", 64, 3 * kCnn, 1.3));
  all.push_back(network("forward", "resnet18", 1, kResnet18, 1));
  all.push_back(network("forward", "resnet18", 8, kResnet18, 1));
  return all;
}

std::vector<Case> sweeps() {
  std::vector<Case> all;
  for (const std::int64_t n : {16,  32,  63,  64,  65,  100, 127,  128,  129,  200,  255, 256,
                               257, 384, 511, 512, 513, 768, 1000, 1023, 1024, 1025, 1536})
    all.push_back(matmul(n, n, n, 0));
  for (const std::int64_t size : {7, 13, 14, 15, 27, 28, 29, 55, 56, 57, 112}) {
    all.push_back(convolution("conv2d", {8, 64, size, 64, 3, 1, 1}, 0));
    all.back().group += " sizes";
  }
  for (const std::int64_t channels : {15, 16, 17, 32, 63, 64, 65, 127, 128, 129, 256}) {
    all.push_back(convolution("conv2d", {8, channels, 28, channels, 3, 1, 1}, 0));
    all.back().group += " channels";
  }
  for (const std::int64_t n : {1, 10, 100, 1000}) all.push_back(launches(n));
  for (const std::int64_t batch : {1, 4, 16, 64, 256})
    all.push_back(network("train", "cnn", batch, 3 * kCnn, 0));
  for (auto& one : all) {
    one.group = "sweep: " + one.group;
    one.against.clear();
  }
  return all;
}

}  // namespace

std::vector<Case> cases(const Options& options) {
  auto all = goals();
  if (options.sweeps)
    for (auto& one : sweeps()) all.push_back(std::move(one));
  std::erase_if(all, [&](const Case& one) {
    return one.id.find(options.filter) == std::string::npos &&
           one.group.find(options.filter) == std::string::npos;
  });
  return all;
}

LimitCases limit_cases() {
  Case fma, triad, read;
  fma.id = "limit: multiply-add";
  fma.parameters = R"({"kind": "limit_fma"})";
  triad.id = "limit: triad";
  triad.parameters = R"({"kind": "limit_triad"})";
  read.id = "limit: read";
  read.parameters = R"({"kind": "limit_read"})";
  fma.flops = kLimitFlops;
  triad.bytes = kFloat * 3 * kLimitElements;
  read.bytes = kFloat * kLimitElements;
  for (auto* one : {&fma, &triad, &read}) one->group = "limits";
  return {fma, triad, read};
}

}  // namespace netcl::bench
