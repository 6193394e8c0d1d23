// The oracle of batch normalisation, and its samples.
#include <cmath>

#include "base/format.h"
#include "ops/norm/batch.h"

namespace netcl {
namespace {

struct Channel {
  std::vector<std::size_t> places;
  double mean = 0, variance = 0;
};

Channel channel_of(const RefArray& x, std::int64_t c) {
  const auto plan = plan_batch(x.shape);
  Channel channel;
  for (std::int64_t i = 0; i < plan.count(); ++i)
    channel.places.push_back(static_cast<std::size_t>(plan.at(c, i)));
  const auto n = static_cast<double>(channel.places.size());
  for (const auto at : channel.places) channel.mean += x.values[at] / n;
  for (const auto at : channel.places)
    channel.variance += (x.values[at] - channel.mean) * (x.values[at] - channel.mean) / n;
  return channel;
}

OpSample sample_of(const Shape& shape, bool backward) {
  const Shape channels{shape[1]};
  SampleInput x{shape, Fill::uniform, -2, 3}, scale{channels, Fill::uniform, 0.5, 1.5},
      shift{channels};
  OpSample sample{join(shape.sizes(), "x"), {x, scale, shift}, {{"eps", 1e-5}}};
  if (backward) {
    // The harness fills in the sample's dtype; statistics of float16 are float32.
    SampleInput mean{channels, Fill::uniform, 0.4, 0.6}, inverse{channels, Fill::uniform, 0.6, 0.8};
    sample.inputs = {x, scale, mean, inverse, {shape}};
    sample.attributes = {};
    sample.dtypes = {DType::float32, DType::float64};
  }
  return sample;
}

// The same sample for float16, whose statistics are float32.
OpSample in_half(OpSample sample, std::initializer_list<std::size_t> statistics) {
  sample.id += "_half";
  sample.dtypes = {DType::float16};
  sample.gradient = false;
  for (const auto i : statistics) sample.inputs[i].dtype = DType::float32;
  return sample;
}

std::vector<Shape> shapes() {
  return {{2, 1},        {5, 3},          {17, 7},         {2, 3, 5},      {3, 2, 16},
          {3, 2, 17},    {2, 5, 3, 4},    {1, 3, 7, 7},    {4, 1, 3, 3},   {2, 16, 5, 5},
          {2, 17, 2, 3}, {2, 3, 2, 3, 4}, {65, 4},         {3, 2, 1, 257}, {300, 2},
          {2, 40, 9},    {1, 2, 1031},    {3, 1},          {7, 5},         {31, 2},
          {33, 3},       {5, 1, 15},      {2, 3, 31},      {2, 2, 63},     {3, 5, 1, 7},
          {1, 2, 5, 13}, {1, 1, 4, 17},   {3, 1, 2, 2, 3}, {257, 1}};
}

}  // namespace

void reference_batch_train(RefCall& call) {
  const auto& x = call.inputs[0];
  for (std::int64_t c = 0; c < x.shape[1]; ++c) {
    const auto channel = channel_of(x, c);
    const auto k = static_cast<std::size_t>(c);
    const double inverse = 1 / std::sqrt(channel.variance + call.attributes.number("eps"));
    for (const auto at : channel.places)
      call.outputs[0].values[at] =
          (x.values[at] - channel.mean) * inverse * call.inputs[1].values[k] +
          call.inputs[2].values[k];
    call.outputs[1].values[k] = channel.mean;
    call.outputs[2].values[k] = inverse;
  }
}

void reference_batch_backward(RefCall& call) {
  const auto &x = call.inputs[0], &dy = call.inputs[4];
  for (std::int64_t c = 0; c < x.shape[1]; ++c) {
    const auto k = static_cast<std::size_t>(c);
    const auto places = channel_of(x, c).places;
    const double mean = call.inputs[2].values[k], inverse = call.inputs[3].values[k];
    double total = 0, along = 0;
    for (const auto at : places) {
      total += dy.values[at];
      along += dy.values[at] * (x.values[at] - mean) * inverse;
    }
    const auto n = static_cast<double>(places.size());
    for (const auto at : places)
      call.outputs[0].values[at] =
          call.inputs[1].values[k] * inverse *
          (dy.values[at] - total / n - (x.values[at] - mean) * inverse * along / n);
    call.outputs[1].values[k] = along;
    call.outputs[2].values[k] = total;
  }
}

void reference_batch_inference(RefCall& call) {
  const auto& x = call.inputs[0];
  for (std::int64_t c = 0; c < x.shape[1]; ++c) {
    const auto in = [&](std::size_t i) {
      return call.inputs[i].values[static_cast<std::size_t>(c)];
    };
    for (const auto at : channel_of(x, c).places) {
      const double v =
          (x.values[at] - in(3)) / std::sqrt(in(4) + call.attributes.number("eps")) * in(1) + in(2);
      call.outputs[0].values[at] = call.attributes.flag("fuse_relu") && v <= 0 ? 0 : v;
    }
  }
}

std::vector<OpSample> batch_train_samples() {
  std::vector<OpSample> all;
  for (const auto& shape : shapes()) all.push_back(sample_of(shape, false));
  all.push_back(sample_of({3, 0, 4}, false));
  auto eps = sample_of({4, 3, 5}, false);
  eps.id = "eps_half";
  eps.attributes = {{"eps", 0.5}};
  all.push_back(eps);
  auto special = sample_of({3, 3}, false);
  special.id = "special_channels";
  special.inputs[0].fill = Fill::values;
  special.inputs[0].values = {NAN, 1, INFINITY, 2, 2, 1, 3, 4, 1};
  special.gradient = false;
  all.push_back(special);
  return all;
}

std::vector<OpSample> batch_backward_samples() {
  std::vector<OpSample> all;
  for (const auto& shape : shapes()) {
    all.push_back(sample_of(shape, true));
    if (shape.rank() == 4) all.push_back(in_half(sample_of(shape, true), {2, 3}));
  }
  all.push_back(sample_of({0, 3, 2}, true));
  return all;
}

std::vector<OpSample> batch_inference_samples() {
  std::vector<OpSample> all;
  auto every = shapes();
  every.insert(every.end(), {{0, 3, 2}, {1, 1}, {2, 3, 1, 15}});
  for (const auto& shape : every)
    for (const bool relu : {false, true}) {
      auto sample = sample_of(shape, false);
      const Shape channels{shape[1]};
      sample.inputs.push_back({channels, Fill::uniform, -0.5, 0.5});
      sample.inputs.push_back({channels, Fill::uniform, 0.5, 2});
      sample.attributes = {{"eps", 1e-5}, {"fuse_relu", relu}};
      if (relu) sample.id += "_relu";
      sample.dtypes = {DType::float32, DType::float64};
      all.push_back(sample);
      if (shape.rank() > 3) all.push_back(in_half(sample, {3, 4}));
    }
  auto special = all[4];
  special.id = "special";
  special.inputs[0].fill = Fill::values;
  special.inputs[0].values = {NAN, 1, INFINITY, -INFINITY, 2, -2, 0};
  special.gradient = false;
  all.push_back(special);
  return all;
}

}  // namespace netcl
