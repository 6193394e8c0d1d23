// One list of geometries for the convolution and its gradients.
#include "ops/conv2d/samples.h"

#include "ops/conv2d/sizes.h"

namespace netcl::conv {
namespace {

using P = ops::Pair;

struct Geometry {
  const char* id;
  std::int64_t N, C, H, W, K, R, S;
  P stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  std::int64_t activation = 0;
  bool forward_only = false;
  bool residual = false;
};

// Sizes around the tiles (16, 32, 64), primes and ones; every attribute alone and together.
std::vector<Geometry> geometries() {
  return {
      {"one", 1, 1, 1, 1, 1, 1, 1},
      {"one_filter_row", 1, 1, 1, 7, 1, 1, 3},
      {"one_filter_column", 1, 2, 7, 1, 3, 3, 1},
      {"3x3", 1, 1, 5, 5, 1, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, false},
      {"3x3_same", 2, 3, 8, 8, 4, 3, 3, {1, 1}, {1, 1}},
      {"3x3_odd", 1, 5, 7, 9, 7, 3, 3, {1, 1}, {1, 1}},
      {"3x3_pad_1_0", 1, 2, 6, 5, 3, 3, 3, {1, 1}, {1, 0}},
      {"3x3_pad2", 1, 2, 5, 4, 3, 3, 3, {1, 1}, {2, 2}, {1, 1}, 1, false},
      {"3x3_one_output", 2, 4, 3, 3, 5, 3, 3},
      {"3x3_wide", 1, 3, 3, 35, 17, 3, 3, {1, 1}, {1, 1}},
      {"3x3_stride2", 2, 3, 9, 9, 4, 3, 3, {2, 2}, {1, 1}},
      {"3x3_stride_2_1", 1, 3, 8, 7, 5, 3, 3, {2, 1}, {1, 1}},
      {"3x3_stride3", 1, 2, 11, 10, 3, 3, 3, {3, 3}, {0, 0}},
      {"3x3_dilated2", 1, 3, 9, 9, 4, 3, 3, {1, 1}, {2, 2}, {2, 2}},
      {"3x2_dilated_1_3", 1, 2, 7, 11, 3, 3, 2, {1, 1}, {0, 1}, {1, 3}},
      {"dilated_strided", 1, 2, 12, 13, 3, 3, 3, {2, 3}, {2, 1}, {2, 2}},
      {"all_asymmetric", 2, 4, 11, 13, 6, 2, 3, {1, 2}, {2, 1}, {3, 1}, 2},
      {"1x1", 2, 5, 4, 4, 7, 1, 1},
      {"1x1_no_bias", 1, 16, 5, 5, 16, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, false},
      {"1x1_stride2", 1, 6, 7, 7, 9, 1, 1, {2, 2}},
      {"1x1_padded", 1, 3, 4, 5, 2, 1, 1, {1, 1}, {1, 2}},
      {"1x1_images_of_130", 3, 19, 10, 13, 21, 1, 1},
      {"1x1_groups", 1, 8, 5, 3, 12, 1, 1, {1, 1}, {0, 0}, {1, 1}, 4},
      {"5x5", 1, 3, 9, 11, 5, 5, 5, {1, 1}, {2, 2}},
      {"7x7_stride2", 1, 3, 17, 19, 8, 7, 7, {2, 2}, {3, 3}},
      {"4x4_even", 1, 2, 6, 7, 3, 4, 4, {1, 1}, {1, 2}},
      {"whole_image", 2, 3, 5, 6, 11, 5, 6},
      {"padding_beyond", 1, 2, 3, 3, 2, 3, 3, {1, 1}, {5, 4}},
      {"padding_only_rows", 1, 1, 2, 4, 2, 2, 2, {3, 3}, {4, 3}},
      {"stride_beyond_filter", 1, 3, 13, 14, 4, 2, 2, {4, 5}},
      {"groups2", 1, 6, 6, 7, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2},
      {"groups3_thick", 1, 6, 5, 5, 27, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3},
      {"depthwise", 2, 5, 7, 8, 5, 3, 3, {1, 1}, {1, 1}, {1, 1}, 5},
      {"depthwise_x3_stride2", 1, 4, 9, 10, 12, 3, 3, {2, 2}, {1, 1}, {1, 1}, 4},
      {"depthwise_5x5_dilated", 1, 3, 12, 11, 6, 5, 5, {1, 1}, {4, 4}, {2, 2}, 3, false},
      {"depthwise_row18", 1, 2, 3, 18, 2, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2},
      {"depthwise_wide", 2, 3, 9, 37, 3, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3},
      {"depthwise_wide_5x5_stride2", 1, 2, 11, 79, 2, 5, 5, {2, 2}, {2, 2}, {1, 1}, 2},
      {"depthwise_wide_5x5", 2, 2, 7, 34, 2, 5, 5, {1, 1}, {2, 2}, {1, 1}, 2},
      {"depthwise_wide_x2_unpadded", 1, 4, 6, 21, 8, 3, 3, {1, 1}, {0, 0}, {1, 1}, 4},
      {"depthwise_wide_pad_beyond", 3, 2, 1, 17, 2, 2, 3, {1, 1}, {1, 20}, {1, 2}, 2},
      {"depthwise_52", 1, 4, 12, 52, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4, false},
      {"row_of_300", 1, 2, 2, 300, 5, 1, 3, {1, 1}, {0, 1}, {1, 1}, 1, false},
      {"filters_40_7x7_stride2", 1, 3, 13, 21, 40, 7, 7, {2, 2}, {3, 3}},
      {"7x7_stride2_row31", 2, 3, 11, 61, 13, 7, 7, {2, 2}, {3, 3}},
      {"3x3_stride3_row16", 1, 2, 7, 48, 5, 3, 3, {3, 3}, {1, 1}},
      {"3x3_dilated2_row32", 1, 2, 6, 32, 9, 3, 3, {1, 1}, {2, 2}, {2, 2}},
      {"groups2_row32", 1, 4, 5, 32, 6, 3, 3, {2, 1}, {1, 1}, {1, 1}, 2},
      {"3x3_stride2_row64", 1, 1, 9, 64, 9, 3, 3, {2, 2}, {1, 1}},
      {"5x5_stride3_row49", 2, 3, 14, 49, 8, 5, 5, {3, 3}, {2, 2}},
      {"2x2_stride3_row37", 1, 2, 11, 37, 8, 2, 2, {3, 3}},
      {"1x1_stride2_padded_row35", 1, 3, 7, 35, 9, 1, 1, {2, 2}, {1, 1}},
      {"1x3_stride_1_9", 1, 2, 3, 60, 8, 1, 3, {1, 9}, {0, 1}},
      {"3x5_stride_3_2_pad_beyond", 1, 7, 12, 70, 8, 3, 5, {3, 2}, {4, 7}},
      {"groups2_4x3_stride_2_3", 1, 16, 10, 40, 18, 4, 3, {2, 3}, {1, 0}, {1, 1}, 2},
      {"filters_1100_stride2", 1, 1, 4, 127, 1100, 3, 3, {2, 2}, {1, 1}},
      {"filters_17", 1, 2, 5, 6, 17, 3, 3, {1, 1}, {1, 1}},
      {"filters_33", 1, 9, 4, 17, 33, 2, 2},
      {"filters_65", 1, 17, 3, 5, 65, 1, 1},
      {"primes", 3, 7, 11, 13, 19, 3, 5, {1, 1}, {1, 2}},
      {"2x16x20x20_k32", 2, 16, 20, 20, 32, 3, 3, {1, 1}, {1, 1}},
      {"1x64x9x9_k64", 1, 64, 9, 9, 64, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, false},
      {"2x33x29x27_k25", 2, 33, 29, 27, 25, 3, 3, {1, 1}, {1, 1}},
      {"3x24x21x18_k37_pad_0_2", 3, 24, 21, 18, 37, 3, 3, {1, 1}, {0, 2}},
      {"long_sums_of_49_pixels", 1, 170, 7, 7, 8, 3, 3, {1, 1}, {1, 1}},
      {"relu", 1, 3, 6, 6, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, true, 1, true},
      {"gelu", 1, 3, 6, 6, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, true, 2, true},
      {"silu", 1, 3, 6, 6, 4, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, true, 3, true},
      {"sigmoid_no_bias", 1, 4, 6, 5, 4, 3, 3, {2, 2}, {1, 1}, {1, 1}, 2, false, 4, true},
      {"tanh_depthwise", 1, 4, 6, 5, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4, true, 5, true},
      {"silu_depthwise_wide", 1, 4, 5, 33, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4, true, 3, true},
      {"relu_depthwise_wide", 1, 4, 5, 29, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4, true, 1, true},
      {"residual", 3, 5, 7, 9, 5, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, true, 1, true, true},
      {"residual_strided", 2, 3, 9, 8, 7, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, false, 1, true, true},
      {"residual_row32", 1, 3, 5, 63, 10, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, true, 1, true, true},
      {"residual_1x1", 2, 17, 5, 7, 33, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, true, 1, true, true},
      {"residual_groups", 1, 4, 5, 6, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2, false, 1, true, true},
      {"residual_depthwise", 2, 5, 6, 19, 5, 3, 3, {1, 1}, {1, 1}, {1, 1}, 5, true, 1, true, true},
      {"residual_no_channels", 2, 0, 5, 5, 3, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, true, 1, true, true},
      {"residual_linear", 1, 3, 6, 7, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, false, 0, true, true},
      {"residual_gelu", 1, 3, 6, 7, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, true, 2, true, true},
      {"no_batch", 0, 3, 6, 6, 4, 3, 3},
      {"no_channels", 2, 0, 5, 5, 3, 3, 3},
      {"no_channels_no_bias", 1, 0, 5, 5, 3, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, false},
      {"no_filters", 1, 2, 5, 5, 0, 3, 3},
  };
}

std::int64_t out(const Geometry& g, int axis) {
  const auto i = static_cast<std::size_t>(axis);
  return conv_output(axis == 0 ? g.H : g.W, axis == 0 ? g.R : g.S, g.stride[i], g.padding[i],
                     g.dilation[i]);
}

Attributes attributes_of(const Geometry& g) {
  return {{"stride", pair_of(g.stride)},
          {"padding", pair_of(g.padding)},
          {"dilation", pair_of(g.dilation)},
          {"groups", g.groups}};
}

// Central differences call the reference a hundred times: only where that is quick.
bool is_small(const Geometry& g) {
  return g.N * g.K * out(g, 0) * out(g, 1) * g.C / g.groups * g.R * g.S < 200'000;
}

OpSample forward_sample(const Geometry& g) {
  OpSample sample{g.id,
                  {{{g.N, g.C, g.H, g.W}},
                   {{g.K, g.C / g.groups, g.R, g.S}},
                   {.shape = {g.K}, .present = g.bias}},
                  attributes_of(g)};
  sample.attributes.set("activation", g.activation);
  if (g.residual) sample.inputs.push_back({{g.N, g.K, out(g, 0), out(g, 1)}});
  return sample;
}

}  // namespace

std::vector<OpSample> forward_tuning() {
  std::vector<OpSample> samples;
  for (const Geometry& g : std::initializer_list<Geometry>{
           {"8x64x56x56_k64_3x3", 8, 64, 56, 56, 64, 3, 3, {1, 1}, {1, 1}},
           {"8x256x14x14_k256_3x3", 8, 256, 14, 14, 256, 3, 3, {1, 1}, {1, 1}},
           {"8x64x56x56_k256_1x1", 8, 64, 56, 56, 256, 1, 1},
           {"8x3x224x224_k64_7x7_s2", 8, 3, 224, 224, 64, 7, 7, {2, 2}, {3, 3}}})
    samples.push_back(forward_sample(g));
  return samples;
}

std::vector<OpSample> forward_samples() {
  std::vector<OpSample> samples;
  for (const auto& g : geometries()) {
    auto sample = forward_sample(g);
    // Each activation is another program, each with a residual too; the gradients run them in
    // float64.
    if (g.activation > 0 || g.residual) sample.dtypes = {DType::float32};
    if (g.activation == 1) sample.dtypes.push_back(DType::float16);
    sample.gradient = is_small(g);
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<OpSample> backward_data_samples() {
  std::vector<OpSample> samples;
  bool bias = false;
  for (const auto& g : geometries()) {
    if (g.forward_only) continue;
    bias = !bias;  // every other one has a bias, as conv_transpose2d
    OpSample sample{g.id,
                    {{{g.N, g.K, out(g, 0), out(g, 1)}},
                     {{g.K, g.C / g.groups, g.R, g.S}},
                     {.shape = {g.C}, .present = bias}},
                    attributes_of(g)};
    sample.attributes.set("size", pair_of({g.H, g.W}));
    sample.gradient = is_small(g);
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<OpSample> backward_weights_samples() {
  std::vector<OpSample> samples;
  for (const auto& g : geometries()) {
    if (g.forward_only) continue;
    OpSample sample{
        g.id, {{{g.N, g.C, g.H, g.W}}, {{g.N, g.K, out(g, 0), out(g, 1)}}}, attributes_of(g)};
    sample.attributes.set("filter", pair_of({g.R, g.S}));
    sample.gradient = is_small(g);
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace netcl::conv
