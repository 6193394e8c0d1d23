#include "ops/elementwise/samples.h"

#include "base/format.h"

namespace netcl {
namespace {

SampleInput input_of(const ElementRow& row, std::size_t index, const Shape& shape) {
  SampleInput input{shape};
  input.low = index == 1 ? row.low_b : row.low;
  input.high = index == 1 ? row.high_b : row.high;
  if (row.inputs == 3 && index == 0) input = {shape, Fill::integers, 0, 1, DType::boolean};
  if (row.inputs == 3 && index > 0) input.low = -3, input.high = 3;
  // Equal values must occur where equality matters.
  if (row.kind == ElementKind::predicate) input = {shape, Fill::integers, -2, 2};
  return input;
}

Attributes scalars_of(const ElementRow& row) {
  Attributes attributes;
  for (int i = 0; i < 2; ++i)
    if (row.scalars[i] != nullptr) attributes.set(row.scalars[i], row.sample_scalars[i]);
  return attributes;
}

OpSample sample_of(const ElementRow& row, std::string id, std::vector<Shape> shapes) {
  OpSample sample{std::move(id), {}, scalars_of(row)};
  for (std::size_t i = 0; i < static_cast<std::size_t>(row.inputs); ++i)
    sample.inputs.push_back(input_of(row, i, shapes[std::min(i, shapes.size() - 1)]));
  return sample;
}

OpSample special_sample(const ElementRow& row) {
  auto sample = sample_of(row, "special", {{97}});
  for (auto& input : sample.inputs) {
    if (!input.dtype) input.fill = Fill::special;
  }
  sample.gradient = false;
  sample.dtypes = kFloats;
  return sample;
}

// The machinery around the expressions is the same for all rows; these try it in full.
bool tries_everything(const ElementRow& row) {
  const std::string_view name = row.name;
  return name == "add" || name == "relu" || name == "where" || name == "lt";
}

std::vector<OpSample> few_samples(const ElementRow& row) {
  std::vector<OpSample> samples = {sample_of(row, "0", {{0}}), sample_of(row, "1", {{1}}),
                                   sample_of(row, "19", {{19}}), sample_of(row, "1031", {{1031}}),
                                   special_sample(row)};
  if (row.inputs > 1) samples.push_back(sample_of(row, "5x1+1x7", {{5, 1}, {1, 7}}));
  return samples;
}

}  // namespace

std::vector<OpSample> element_samples(const ElementRow& row) {
  if (!tries_everything(row)) return few_samples(row);
  std::vector<OpSample> samples;
  samples.push_back(sample_of(row, "scalar", {{}}));
  for (const std::int64_t n : {0, 1, 2, 3, 15, 16, 17, 63, 65, 255, 1023, 4099})
    samples.push_back(sample_of(row, fmt::format("{}", n), {{n}}));
  samples.push_back(sample_of(row, "7x1x13", {{7, 1, 13}}));
  samples.push_back(special_sample(row));
  if (row.inputs == 1) return samples;
  samples.push_back(sample_of(row, "5x1+1x7", {{5, 1}, {1, 7}, {5, 7}}));
  samples.push_back(sample_of(row, "3x4x5+5", {{3, 4, 5}, {5}, {1, 4, 1}}));
  samples.push_back(sample_of(row, "scalar+11x3", {{}, {11, 3}, {3}}));
  samples.push_back(sample_of(row, "0x3+1x3", {{0, 3}, {1, 3}, {3}}));
  samples.push_back(
      sample_of(row, "2x3x1x5x1x7+3x4x1x6x1", {{2, 3, 1, 5, 1, 7}, {3, 4, 1, 6, 1}, {1}}));
  auto number = sample_of(row, "31+number", {{31}});
  number.inputs.back().present = false;
  number.attributes.set(row.inputs == 2 ? "scalar1" : "scalar2", 2.0);
  samples.push_back(number);
  return samples;
}

std::vector<OpSample> element_tuning(const ElementRow& row) {
  std::vector<OpSample> samples;
  for (const std::int64_t n : {1 << 12, 1 << 16, 1 << 20, 1 << 24})
    samples.push_back(sample_of(row, fmt::format("{}", n), {{n}}));
  for (const std::int64_t n : {64, 1024})
    samples.push_back(sample_of(row, fmt::format("{0}x{0}+{0}", n), {{n, n}, {n}}));
  return samples;
}

}  // namespace netcl
