// The variants of the gradients. The fast ones turn them into convolutions, whose kernels are the
// ones that are tuned to the devices.
#include "base/format.h"
#include "ops/conv2d/launch.h"
#include "ops/conv2d/planes.h"
#include "ops/conv2d/weights_tiles.h"
#include "ops/registry.h"
#include "ops/weight_forms.h"

namespace netcl::conv {
namespace {

constexpr const char* kNaive = "ops/conv2d/backward_naive.cl";
constexpr const char* kPath = "ops/conv2d/backward.cl";
constexpr std::int64_t kWorkspace = 64 << 20;  // bytes, where it can be kept that small

ConvSizes sizes_of_weights(const OpCall& call) {
  return weights_sizes("conv2d_backward_weights", call.inputs[0].shape(), call.inputs[1].shape(),
                       call.attributes);
}

void run_data_naive(const OpCall& call, const VariantRun&) {
  const bool has_bias = call.has(2);
  const auto kernel =
      op_kernel(call.queue, {kNaive, "conv2d_backward_data_naive", {bit(call.dtype())}},
                [&] { return t_and_acc(call.dtype()); });
  const auto geometry = sizes_of_data(call).geometry();
  const auto& dx = call.outputs[0];
  const auto args = OpArgs()
                        .tensor(call.inputs[0])
                        .tensor(call.inputs[1])
                        .tensor(call.inputs[has_bias ? 2 : 1])
                        .tensor(dx)
                        .by_value(&geometry, sizeof geometry)
                        .value(std::int32_t{has_bias})
                        .value(dx.numel());
  enqueue_items(call.queue, kernel, args, dx.numel());
}

void run_weights_naive(const OpCall& call, const VariantRun&) {
  const auto kernel =
      op_kernel(call.queue, {kNaive, "conv2d_backward_weights_naive", {bit(call.dtype())}},
                [&] { return t_and_acc(call.dtype()); });
  const auto geometry = sizes_of_weights(call).geometry();
  const auto& dw = call.outputs[0];
  const auto args = OpArgs()
                        .tensor(call.inputs[0])
                        .tensor(call.inputs[1])
                        .tensor(dw)
                        .by_value(&geometry, sizeof geometry)
                        .value(dw.numel());
  const bool cpu = device_profile(call.queue).is_cpu;
  enqueue_items(call.queue, kernel, args, dw.numel(), cpu ? 16 : kGroup1d);
}

KernelPtr layout_kernel(const OpCall& call, const char* name) {
  return op_kernel(call.queue, {kPath, name, {bit(call.dtype())}},
                   [&] { return t_and_acc(call.dtype()); });
}

// The filters laid out anew as `to`, by `items` work-items.
void lay_out(const OpCall& call, const char* name, const Tensor& to, const ConvSizes& s,
             std::int64_t items) {
  const auto geometry = s.geometry();
  enqueue_items(
      call.queue, layout_kernel(call, name),
      OpArgs().tensor(call.inputs[1]).tensor(to).by_value(&geometry, sizeof geometry).value(items),
      items);
}

Attributes conv_attributes(const ConvSizes& s, ops::Pair padding, std::int64_t groups) {
  return {{"stride", pair_of({1, 1})},
          {"padding", pair_of(padding)},
          {"dilation", pair_of({s.dilation_h, s.dilation_w})},
          {"groups", groups},
          {"activation", std::int64_t{0}}};
}

// ---- dx of stride 1: a convolution of dy with the filters turned around

ops::Pair flipped_padding(const ConvSizes& s) {
  return {s.dilation_h * (s.R - 1) - s.padding_h, s.dilation_w * (s.S - 1) - s.padding_w};
}

std::string cannot_flip(const OpCall& call, const ExtendedDeviceProfile&) {
  const auto s = sizes_of_data(call);
  if (s.is_strided()) return fmt::format("stride ({}, {}), not 1", s.stride_h, s.stride_w);
  const auto padding = flipped_padding(s);
  if (padding[0] < 0 || padding[1] < 0) return "the padding reaches beyond the filter";
  if (s.P != conv_output(s.H, s.R, 1, s.padding_h, s.dilation_h) ||
      s.Q != conv_output(s.W, s.S, 1, s.padding_w, s.dilation_w))
    return "dy does not cover the whole of x";
  return s.K == 0 ? "there are no filters" : "";
}

Tensor flipped(const Tensor& w, std::int64_t groups) {
  const auto s = sizes_of_filters(w, groups);
  const auto to = Tensor::empty(w.queue(), {s.C, s.group_filters(), s.R, s.S}, w.dtype());
  const auto kernel = op_kernel(w.queue(), {kPath, "flip_filters", {bit(w.dtype())}},
                                [&] { return t_and_acc(w.dtype()); });
  const auto geometry = s.geometry();
  const auto count = s.C * s.group_filters();
  enqueue_items(w.queue(), kernel,
                OpArgs().tensor(w).tensor(to).by_value(&geometry, sizeof geometry).value(count),
                count);
  return to;
}

void run_data_flipped(const OpCall& call, const VariantRun&) {
  const auto s = sizes_of_data(call);
  const auto filters = form_of({"conv2d_flipped",
                                {s.groups},
                                [groups = s.groups](const Tensors& sources) -> Tensors {
                                  return {flipped(sources[0], groups)};
                                }},
                               {call.inputs[1]});
  call_op_into(find_op("conv2d"),
               {call.inputs[0], filters, call.has(2) ? call.inputs[2] : Tensor()},
               conv_attributes(s, flipped_padding(s), s.groups), call.outputs);
}

// ---- dx of any stride: all products of dy and w as one 1x1 convolution, then their sums

constexpr std::int64_t kThin = 8;  // filters of a group that make a matrix product worth its copies

std::string too_thin(const ConvSizes& s) {
  if (s.group_filters() >= kThin) return {};
  return fmt::format("{} filters per group are too few for a matrix product", s.group_filters());
}

void run_data_col2im(const OpCall& call, const VariantRun&) {
  const auto s = sizes_of_data(call);
  const auto work = compute_dtype(call.dtype());
  const auto filters = Tensor::empty(call.queue, {s.C * s.R * s.S, s.group_filters(), 1, 1}, work);
  lay_out(call, "transpose_filters", filters, s, s.C * s.R * s.S);
  const auto image_bytes = s.C * s.R * s.S * s.pixels() * static_cast<std::int64_t>(size_of(work));
  const auto part = std::clamp<std::int64_t>(kWorkspace / image_bytes, 1, s.N);
  const bool has_bias = call.has(2);
  const auto geometry = s.geometry();
  for (std::int64_t first = 0; first < s.N; first += part) {
    const auto images = std::min(part, s.N - first);
    auto attributes = conv_attributes(s, {0, 0}, s.groups);
    attributes.set("dilation", pair_of({1, 1}));
    const auto dy = call.inputs[0].narrow(0, first, images).astype(work);
    const auto columns = apply("conv2d", {dy, filters, {}}, attributes);
    const auto dx = call.outputs[0].narrow(0, first, images);
    enqueue_items(call.queue, layout_kernel(call, "col2im"),
                  OpArgs()
                      .tensor(columns)
                      .tensor(call.inputs[has_bias ? 2 : 1])
                      .tensor(dx)
                      .by_value(&geometry, sizeof geometry)
                      .value(std::int32_t{has_bias})
                      .value(dx.numel()),
                  dx.numel());
  }
}

std::string cannot_col2im(const OpCall& call, const ExtendedDeviceProfile&) {
  const auto s = sizes_of_data(call);
  if (s.pixels() == 0) return "dy is empty";
  return too_thin(s);
}

// ---- dw: the pixels of all images are the channels of a 1x1 convolution. They are cut into parts,
// each a group of its own, so that no sum is long and there is work for every core.

struct Parts {
  std::int64_t length, count, at_once;
};

Parts parts_of(const ConvSizes& s, DType work) {
  const auto places = s.N * s.pixels();
  Parts parts{std::min<std::int64_t>(places, 256), 0, 0};
  parts.count = static_cast<std::int64_t>(ceil_div(places, parts.length));
  const auto bytes = parts.length * s.taps() * s.groups * static_cast<std::int64_t>(size_of(work));
  parts.at_once = std::clamp<std::int64_t>(kWorkspace / bytes, 1, parts.count);
  return parts;
}

// Rows of `width` units, one work-item per block of them. Finding a row costs divisions, which a
// CPU does once per row; a GPU has the items to hide them and wants neighbours to read neighbours.
void lay_out_rows(const OpCall& call, const char* name, const Tensor& from, const Tensor& to,
                  const ConvGeometry& geometry, std::int64_t first, std::int64_t length,
                  std::int64_t rows, std::int64_t width) {
  const bool cpu = device_profile(call.queue).is_cpu;
  const auto block = cpu ? width : 1;
  const auto kernel = layout_kernel(call, name);
  const auto blocks = static_cast<std::int64_t>(ceil_div(width, block));
  // Groups lie along the blocks where there are many; else on a GPU along the rows.
  const auto group = static_cast<std::int64_t>(clamped_local(kernel, blocks > 1 ? 64 : 1));
  const auto down =
      static_cast<std::int64_t>(clamped_local(kernel, blocks > 1 || cpu ? 1 : kGroup1d));
  OpArgs()
      .tensor(from)
      .tensor(to)
      .by_value(&geometry, sizeof geometry)
      .value(first)
      .value(static_cast<std::int32_t>(length))
      .value(static_cast<std::int32_t>(block))
      .value(rows)
      .enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(rounded_up(blocks, group)),
                static_cast<std::int64_t>(rounded_up(rows, down))},
               {group, down});
}

void run_weights_rows(const OpCall& call, const VariantRun&) {
  const auto s = sizes_of_weights(call);
  const auto work = compute_dtype(call.dtype());
  const auto parts = parts_of(s, work);
  const auto sums = Tensor::empty(call.queue, {1, parts.count * s.K, 1, s.taps()}, work);
  auto attributes = conv_attributes(s, {0, 0}, 1);
  attributes.set("dilation", pair_of({1, 1}));
  for (std::int64_t first = 0; first < parts.count; first += parts.at_once) {
    const auto count = std::min(parts.at_once, parts.count - first);
    const auto x =
        Tensor::empty(call.queue, {1, count * s.groups * parts.length, 1, s.taps()}, work);
    const auto dy = Tensor::empty(call.queue, {count * s.K, parts.length, 1, 1}, work);
    const auto place = first * parts.length;
    lay_out_rows(call, "rows_of_x", call.inputs[0], x, s.geometry(), place, parts.length,
                 count * s.groups * parts.length, s.group_channels());
    lay_out_rows(call, "rows_of_dy", call.inputs[1], dy, s.geometry(), place, parts.length,
                 count * s.K, parts.length);
    attributes.set("groups", count * s.groups);
    call_op_into(find_op("conv2d"), {x, dy, {}}, attributes,
                 {sums.narrow(1, first * s.K, count * s.K)});
  }
  const auto& dw = call.outputs[0];
  enqueue_items(call.queue, layout_kernel(call, "sum_parts"),
                OpArgs().tensor(sums).tensor(dw).value(parts.count).value(dw.numel()), dw.numel());
}

std::string cannot_use_rows(const OpCall& call, const ExtendedDeviceProfile&) {
  const auto s = sizes_of_weights(call);
  if (s.N * s.pixels() == 0) return "dy is empty";
  return too_thin(s);
}

}  // namespace

std::vector<OpVariant> backward_data_variants() {
  OpVariant naive{"conv2d_backward_data.naive", "", kNaive};
  naive.run = run_data_naive;
  const OpVariant flipped{"conv2d_backward_data.flipped", "", kPath, cannot_flip, run_data_flipped};
  const OpVariant col2im{"conv2d_backward_data.col2im", "", kPath, cannot_col2im, run_data_col2im};
  return {data_phases_variant(), data_planes_variant(), flipped, col2im, naive};
}

std::vector<OpVariant> backward_weights_variants() {
  OpVariant naive{"conv2d_backward_weights.naive", "", kNaive};
  naive.run = run_weights_naive;
  const OpVariant rows{"conv2d_backward_weights.rows", "", kPath, cannot_use_rows,
                       run_weights_rows};
  return {weights_planes_variant(), weights_winograd_variant(), weights_tiles_variant(), rows,
          naive};
}

}  // namespace netcl::conv
