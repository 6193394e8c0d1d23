#include <cmath>
#include <limits>

#include "base/format.h"
#include "ops/reduction/reduction.h"

namespace netcl {
namespace {

using K = ReductionKind;

Attributes attributes_of(const ReductionInfo& info, std::vector<std::int64_t> axes, bool keepdim) {
  if (info.is_arg())
    return {{"axis", axes.empty() ? std::int64_t{0} : axes[0]}, {"keepdim", keepdim}};
  Attributes attributes{{"axes", std::move(axes)}, {"keepdim", keepdim}};
  if (info.kind == K::var) attributes.set("correction", 1.0);
  return attributes;
}

SampleInput input_of(const ReductionInfo& info, const Shape& shape) {
  SampleInput input{shape, Fill::uniform, -1, 1};
  // No two equal: a gradient does not exist at ties. Products stay near 1.
  if (info.needs_elements()) input = {shape, Fill::distinct, -500, 500};
  if (info.kind == K::prod) input.low = 0.8, input.high = 1.25;
  if (info.kind == K::logsumexp) input.low = -6, input.high = 6;
  return input;
}

OpSample sample_of(const ReductionInfo& info, const Shape& shape,
                   const std::vector<std::int64_t>& axes, bool keepdim = false) {
  auto id = join(shape.sizes(), "x");
  for (const auto axis : axes) id += fmt::format("_a{}", axis);
  if (keepdim) id += "_keep";
  if (shape.rank() == 0) id = "scalar" + id;
  return {std::move(id), {input_of(info, shape)}, attributes_of(info, axes, keepdim)};
}

OpSample given(const ReductionInfo& info, std::string id, const Shape& shape,
               std::vector<double> values) {
  SampleInput input{shape};
  input.fill = Fill::values;
  input.values = std::move(values);
  return {std::move(id), {input}, attributes_of(info, {1}, false), false, kFloats};
}

// Rows with NaN and infinities at several places, all finite sums in range.
OpSample special_rows(const ReductionInfo& info) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  return given(info, "special_rows", {9, 4},
               {nan,  1,    2,    3,    1,   nan,  2, inf, inf,  1,    2,   3,
                -inf, 1,    2,    3,    inf, -inf, 1, 2,   inf,  inf,  inf, inf,
                -inf, -inf, -inf, -inf, 0.0, -0.0, 1, nan, -1.5, 0.25, 2,   nan});
}

// Products that a long holds, with every kind of kernel.
std::vector<OpSample> integer_products(const ReductionInfo& info) {
  std::vector<OpSample> samples;
  const auto add = [&](const char* id, const Shape& shape, std::int64_t axis,
                       std::vector<double> values) {
    auto sample = given(info, id, shape, std::move(values));
    sample.attributes = attributes_of(info, {axis}, false);
    sample.dtypes = {DType::int32, DType::int64};
    samples.push_back(std::move(sample));
  };
  add("integers_3x17", {3, 17}, 1, {1, 2, -1, 3, -2});
  add("integers_17x3", {17, 3}, 0, {1, 2, -1, 3, -2});
  add("integers_2x4099", {2, 4099}, 1, {1, -1, 1});
  add("integers_131x37", {131, 37}, 0, {1, -1, 1});
  add("integers_3x0", {3, 0}, 1, {1});
  return samples;
}

std::vector<OpSample> special_samples(const ReductionInfo& info) {
  std::vector<OpSample> samples{special_rows(info)};
  // Whole vectors of neighbours and a part of one, with rows that are and are not taken together.
  auto columns = special_rows(info);
  columns.id = "special_columns";
  SampleInput neighbours{{19, 41}, Fill::values};
  for (std::size_t i = 0; i < 19; ++i)
    for (std::size_t j = 0; j < 41; ++j)
      neighbours.values.push_back(columns.inputs[0].values[j % 9 * 4 + (i + j) % 4]);
  columns.inputs[0] = neighbours;
  columns.attributes = attributes_of(info, {0}, false);
  samples.push_back(columns);
  if (info.needs_elements()) {
    // NaN at one of many places, each in a row of its own, and everywhere.
    SampleInput rare{{24, 700}, Fill::values};
    for (std::int64_t i = 0; i < 24 * 700; ++i) {
      const auto row = i / 700, at = i % 700;
      const bool is_nan = row == 23 ? at % 3 == 0 : at == row * 31;
      rare.values.push_back(is_nan ? std::nan("") : static_cast<double>(i * 37 % 101) - 50);
    }
    samples.push_back({"rare_nan", {rare}, attributes_of(info, {1}, false), false, kFloats});
    samples.push_back({"ties_between",
                       {{{3, 37, 83}, Fill::integers, -2, 2}},
                       attributes_of(info, {1}, false),
                       false});
    samples.push_back({"ties_of_few",
                       {{{53, 9}, Fill::integers, -2, 2}},
                       attributes_of(info, {1}, false),
                       false});
    samples.push_back(
        {"special", {{{7, 41}, Fill::special}}, attributes_of(info, {1}, false), false, kFloats});
    samples.push_back(
        {"ties", {{{5, 67}, Fill::integers, -2, 2}}, attributes_of(info, {1}, false), false});
  }
  if (info.kind == K::logsumexp)
    samples.push_back(
        given(info, "large", {3, 3}, {800, 801, 799, -800, -801, -810, 1e4, 0, -1e4}));
  if (info.kind == K::prod) {
    auto zeros = given(info, "zeros", {3, 4}, {2, 0, 3, 0.5, 0, 2, 0, 1, 1, 2, 0.5, -1});
    zeros.gradient = true;  // which must not divide by a zero
    samples.push_back(zeros);
    for (auto& sample : integer_products(info)) samples.push_back(std::move(sample));
  }
  if (info.kind == K::var) {
    auto shifted = sample_of(info, {3, 257}, {1});
    shifted.id = "far_from_zero";
    shifted.inputs[0].low = 1000, shifted.inputs[0].high = 1002;
    shifted.dtypes = {DType::float32, DType::float64};
    samples.push_back(shifted);
    auto population = sample_of(info, {5, 13}, {1});
    population.id = "correction0";
    population.attributes.set("correction", 0.0);
    samples.push_back(population);
  }
  return samples;
}

// The machinery is the same for all kinds; these try it on larger arrays too.
bool tries_large(const ReductionInfo& info) {
  return info.kind == K::sum || info.is_arg() || info.kind == K::var || info.kind == K::logsumexp;
}

struct Form {
  Shape shape;
  std::vector<std::int64_t> axes;
  bool keepdim = false;
};

std::vector<Form> forms_of(const ReductionInfo& info) {
  std::vector<Form> forms = {{{7}, {0}},        {{3, 17}, {1}},           {{17, 3}, {0}},
                             {{5, 1, 13}, {1}}, {{2, 19, 23}, {1}, true}, {{1031}, {0}},
                             {{2, 4099}, {1}},  {{131, 37}, {0}},         {{3, 33, 2}, {2}},
                             {{0, 3}, {1}}};
  if (!info.is_arg())
    forms.insert(forms.end(), {{{4, 5, 6}, {0, 2}}, {{3, 4, 5}, {}}, {{2, 3, 5, 7}, {1, 3}, true}});
  if (!info.needs_elements()) forms.push_back({{3, 0}, {1}});
  forms.insert(forms.end(), {{{1}, {0}},
                             {{2}, {0}},
                             {{15}, {0}},
                             {{16}, {0}},
                             {{31}, {0}},
                             {{63}, {0}},
                             {{255}, {0}},
                             {{257}, {0}},
                             {{37, 29}, {1}},
                             {{33, 2}, {0}},
                             {{300, 7}, {1}},
                             {{700, 2}, {1}, true},
                             {{2, 301, 17}, {1}},
                             {{1, 65, 1}, {1}, true},
                             {{5, 13, 3}, {-1}},
                             {{2, 3, 5, 7}, {2}},
                             {{3, 1, 4, 1, 5}, {2}},
                             {{2, 2, 2, 2, 2, 3}, {3}}});
  if (tries_large(info))
    forms.insert(forms.end(), {{{70'001}, {0}},
                               {{2, 9001}, {1}},
                               {{2, 700, 16}, {1}},
                               {{1, 9000, 3}, {1}},
                               {{1, 2050, 37}, {1}},
                               {{3, 600}, {0}}});
  if (tries_large(info) && !info.is_arg()) forms.push_back({{11, 2, 9001}, {0, 2}});
  if (!info.is_arg())
    forms.insert(forms.end(), {{{}, {}},
                               {{}, {}, true},
                               {{6, 1, 7}, {0, 1}},
                               {{6, 1, 7}, {0, 2}, true},
                               {{2, 3, 4, 5}, {0, 1, 2, 3}, true},
                               {{2, 3, 4, 5}, {0, 3}},
                               {{7, 4, 33}, {0, 2}},
                               {{3, 5, 2, 1, 40}, {1, 4}, true},
                               {{2, 140, 3, 64}, {1, 3}},
                               {{2, 3, 37, 5, 19}, {0, 2, 3}}});
  if (!info.needs_elements()) forms.insert(forms.end(), {{{0}, {0}}, {{2, 0, 3}, {0, 1}, true}});
  return forms;
}

}  // namespace

std::vector<OpSample> reduction_samples(const ReductionInfo& info) {
  std::vector<OpSample> samples;
  for (const auto& form : forms_of(info)) {
    auto sample = sample_of(info, form.shape, form.axes, form.keepdim);
    const auto axes = reduced_axes(info, sample.attributes, form.shape.rank());
    // var of one element is NaN, and so is its gradient.
    if (info.kind == K::var && plan_reduction(form.shape, axes).reduced == 1)
      sample.gradient = false;
    if (info.kind == K::prod && form.shape.numel() > 2000)
      sample.inputs[0].low = 0.9995, sample.inputs[0].high = 1.0005;
    if (info.kind == K::prod) sample.dtypes = kFloats;
    // The reference takes a mean of that many in one order: in double it is no better than others.
    if (info.kind == K::var && form.shape.numel() > 20'000)
      sample.dtypes = {DType::float32, DType::float16};
    samples.push_back(std::move(sample));
  }
  for (auto& sample : special_samples(info)) samples.push_back(std::move(sample));
  return samples;
}

}  // namespace netcl
