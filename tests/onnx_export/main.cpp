// Writes models as ONNX with an input and netcl's answer each, for tests/python/test_onnx.py:
//   onnx_export <directory>     NAME.onnx, NAME.input.npy, NAME.output.npy
#include <cstdio>
#include <stdexcept>
#include <string>

#include "netcl/netcl.h"

namespace netcl {
namespace {

std::string g_directory;

// The example has another batch size than what is compared: the file must not depend on it.
void write(const std::string& name, nn::ModulePtr model, const Shape& sample,
           bool indices = false) {
  const auto queue = get_active_device().queue;
  auto sizes = sample.sizes();
  const auto input = [&](std::int64_t batch) {
    std::vector<std::int64_t> all{batch};
    all.insert(all.end(), sizes.begin(), sizes.end());
    const auto x = Tensor::random(Shape(all), 7, Distribution::normal);
    return indices ? ops::floor(ops::abs(x) * 3.0).astype(DType::int64) : x;
  };
  // Averages that differ from those of a new model.
  for (const auto& buffer : model->named_buffers()) nn::init::uniform(buffer.tensor, 0.5, 1.5);
  model->eval();
  const auto path = g_directory + "/" + name;
  nn::save_onnx(path + ".onnx", *model, input(1));
  const auto x = input(3);
  io::save_npy(path + ".input.npy", x.to_host());
  io::save_npy(path + ".output.npy", (*model)(x).to_host());
}

nn::ModulePtr sequence(std::vector<nn::ModulePtr> layers) {
  return nn::make<nn::Sequential>(std::move(layers));
}

void write_layers() {
  using namespace nn;
  ops::Conv2dOptions grouped;
  grouped.stride = {2, 1};
  grouped.padding = {1, 2};
  grouped.dilation = {1, 2};
  grouped.groups = 2;
  ops::ConvTranspose2dOptions up;
  up.stride = {2, 2};
  up.padding = {1, 0};
  up.output_padding = {1, 0};
  write("conv", make<Conv2d>(4, 6, ops::Pair{3, 3}, grouped), {4, 9, 11});
  write("conv_no_bias", make<Conv2d>(3, 5, ops::Pair{1, 1}, ops::Conv2dOptions{}, false),
        {3, 4, 4});
  write("conv_transpose", make<ConvTranspose2d>(3, 4, ops::Pair{3, 2}, up), {3, 5, 6});
  write("linear", make<Linear>(7, 5), {7});
  write("linear_rank3", make<Linear>(7, 5, false), {4, 7});
  write("batch_norm1d", make<BatchNorm1d>(6), {6});
  write("batch_norm2d", make<BatchNorm2d>(6, 1e-3), {6, 4, 5});
  write("layer_norm", make<LayerNorm>(std::vector<std::int64_t>{3, 8}), {5, 3, 8});
  write("rms_norm", make<RMSNorm>(8), {5, 8});
  write("group_norm", make<GroupNorm>(3, 6), {6, 4, 5});
  const ops::PoolOptions padded{.stride = {2, 1}, .padding = {1, 1}, .count_padding = false};
  write("max_pool", make<MaxPool2d>(ops::Pair{3, 2}, padded), {2, 9, 8});
  write("avg_pool", make<AvgPool2d>(ops::Pair{3, 2}, padded), {2, 9, 8});
  write("avg_pool_counted", make<AvgPool2d>(ops::Pair{2, 2}), {2, 9, 8});
  write("adaptive", make<AdaptiveAvgPool2d>(ops::Pair{3, 2}), {2, 9, 8});
  write("embedding", sequence({make<Embedding>(20, 6), make<Dropout>(0.5)}), {5}, true);
  write("attention", make<MultiheadAttention>(12, 3), {5, 12});
  write("block", make<TransformerBlock>(8, 2), {5, 8});
  for (const char* function :
       {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus",
        "mish", "hard_sigmoid", "hard_swish", "softmax", "log_softmax"})
    write(std::string("activation_") + function, make<Activation>(function), {4, 9});
}

void write_models() {
  write("mlp", train::make_model("mlp", 1, 28, 28, 10), {1, 28, 28});
  write("cnn", train::make_model("cnn", 1, 28, 28, 10), {1, 28, 28});
  write("resnet18", nn::resnet({18, 10, 3, 8, true}), {3, 32, 32});
  write("resnet34", nn::resnet({34, 7, 3, 8, false}), {3, 64, 64});
  write("resnet50", nn::resnet({50, 7, 3, 8, false}), {3, 64, 64});
  nn::GPT::Options small;
  small.vocabulary = 30, small.context = 16, small.layers = 2, small.heads = 2, small.width = 16;
  write("gpt", nn::make<nn::GPT>(small), {12}, true);
}

}  // namespace
}  // namespace netcl

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("usage: onnx_export <directory>");
    netcl::g_directory = argv[1];
    const netcl::ActiveDevice device("cpu");
    netcl::nn::manual_seed(3);
    netcl::write_layers();
    netcl::write_models();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
