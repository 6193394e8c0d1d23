// Residual networks of depth 18, 34 and 50.
#include "nn/support.h"
#include "nn/together.h"

namespace netcl::nn {
namespace {

ModulePtr conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  ops::Conv2dOptions options;
  options.stride = {stride, stride};
  options.padding = {kernel / 2, kernel / 2};
  auto layer = make<Conv2d>(in, out, ops::Pair{kernel, kernel}, options, false);
  init::kaiming_normal(layer->weight);
  return layer;
}

// relu(path(x) + shortcut(x)); the path is of two 3x3 or of 1x1, 3x3, 1x1 convolutions.
class ResidualBlock : public Module {
 public:
  ResidualBlock(std::int64_t in, std::int64_t width, std::int64_t out, std::int64_t stride)
      : in_(in), width_(width), out_(out), stride_(stride) {
    path_ = make<Sequential>();
    if (width == out) {
      add(conv(in, out, 3, stride), out, true);
      add(conv(out, out, 3), out, false);
    } else {
      add(conv(in, width, 1), width, true);
      add(conv(width, width, 3, stride), width, true);
      add(conv(width, out, 1), out, false);
    }
    add_module("path", path_);
    if (stride == 1 && in == out) return;
    shortcut_ =
        make<Sequential>(std::vector<ModulePtr>{conv(in, out, 1, stride), make<BatchNorm2d>(out)});
    add_module("shortcut", shortcut_);
  }

  std::string type() const override { return "ResidualBlock"; }
  Config config() const override {
    return {{"in", in_}, {"width", width_}, {"out", out_}, {"stride", stride_}};
  }
  Tensor forward(const Tensor& x) override {
    const auto& layers = path_->children();
    const auto before = layers.size() - 2;  // the last ones: a convolution and its norm
    auto end = layers_together(layers, before);
    if (end.count != 2) return ops::relu((*path_)(x) + shortcut_of(x));
    path_->remember_input(x);
    end.activation = ops::Activation::relu;
    return end.forward(forward_layers(layers, before, x), shortcut_of(x));
  }

 private:
  Tensor shortcut_of(const Tensor& x) { return shortcut_ ? (*shortcut_)(x) : x; }
  void add(ModulePtr layer, std::int64_t channels, bool with_relu) {
    path_->append(std::move(layer));
    path_->append(make<BatchNorm2d>(channels));
    if (with_relu) path_->append(relu());
  }

  std::int64_t in_, width_, out_, stride_;
  std::shared_ptr<Sequential> path_, shortcut_;
};

struct Plan {
  int blocks[4];
  std::int64_t expansion;  // output channels of a block per channel inside
};

Plan plan_of(int depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}, 1};
    case 34:
      return {{3, 4, 6, 3}, 1};
    case 50:
      return {{3, 4, 6, 3}, 4};
    default:
      fail<ArgumentError>("[resnet] the depth must be 18, 34 or 50: {}", depth);
  }
}

}  // namespace

ModulePtr make_residual_block(std::int64_t in, std::int64_t width, std::int64_t out,
                              std::int64_t stride) {
  return make<ResidualBlock>(in, width, out, stride);
}

ModulePtr resnet(const ResNetOptions& options) {
  const auto plan = plan_of(options.depth);
  auto net = make<Sequential>();
  const auto width = options.width;
  net->append(options.small_images ? conv(options.channels, width, 3)
                                   : conv(options.channels, width, 7, 2));
  net->append(make<BatchNorm2d>(width));
  net->append(relu());
  if (!options.small_images)
    net->append(
        make<MaxPool2d>(ops::Pair{3, 3}, ops::PoolOptions{.stride = {2, 2}, .padding = {1, 1}}));
  auto channels = width;
  for (int stage = 0; stage < 4; ++stage) {
    const auto inside = width << stage;
    for (int block = 0; block < plan.blocks[stage]; ++block) {
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      net->append(make_residual_block(channels, inside, inside * plan.expansion, stride));
      channels = inside * plan.expansion;
    }
  }
  net->append(make<AdaptiveAvgPool2d>(ops::Pair{1, 1}));
  net->append(make<Flatten>());
  net->append(make<Linear>(channels, options.classes));
  return net;
}

ModulePtr resnet18(std::int64_t classes, std::int64_t channels, bool small_images) {
  return resnet({18, classes, channels, 64, small_images});
}
ModulePtr resnet34(std::int64_t classes, std::int64_t channels, bool small_images) {
  return resnet({34, classes, channels, 64, small_images});
}
ModulePtr resnet50(std::int64_t classes, std::int64_t channels, bool small_images) {
  return resnet({50, classes, channels, 64, small_images});
}

}  // namespace netcl::nn
