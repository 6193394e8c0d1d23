#include "selftest/data.h"

#include <cmath>
#include <limits>
#include <random>

#include "tensor/convert.h"

namespace netcl::selftest_detail {
namespace {

using Random = std::mt19937_64;

// std::uniform_real_distribution differs between libraries; this does not.
double uniform(Random& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

std::int64_t integer(Random& random, std::int64_t low, std::int64_t high) {
  const auto span = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<std::int64_t>(random() % span);
}

double special_value(Random& random, DType dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double largest = dtype == DType::float16   ? 65504.0
                         : dtype == DType::float64 ? std::numeric_limits<double>::max()
                                                   : std::numeric_limits<float>::max();
  // Subnormal numbers are left out: OpenCL lets devices flush them to zero.
  const double values[] = {std::nan(""), kInf, -kInf, 0.0, -0.0, 1.0, -1.0, largest, -largest, 0.5};
  const auto pick = random() % 16;
  return pick < std::size(values) ? values[pick] : uniform(random, -2, 2);
}

void fill_distinct(const SampleInput& input, Random& random, std::vector<double>& values) {
  const auto n = values.size();
  const double step = (input.high - input.low) / static_cast<double>(std::max<std::size_t>(n, 1));
  for (std::size_t i = 0; i < n; ++i) values[i] = input.low + step * (static_cast<double>(i) + 0.5);
  for (std::size_t i = n; i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

// Integers of a range that was meant for fractions: three times as wide, so that there are some.
SampleInput for_integers(SampleInput input) {
  input.fill = Fill::integers;
  input.low = std::ceil(3 * input.low);
  input.high = std::floor(3 * input.high);
  return input;
}

void fill(const SampleInput& input, Random& random, RefArray& array) {
  if (input.fill == Fill::uniform && !is_floating(array.dtype))
    return fill(for_integers(input), random, array);
  if (input.fill == Fill::distinct) return fill_distinct(input, random, array.values);
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    auto& value = array.values[i];
    switch (input.fill) {
      case Fill::integers:
        value = static_cast<double>(integer(random, static_cast<std::int64_t>(input.low),
                                            static_cast<std::int64_t>(input.high)));
        break;
      case Fill::special:
        value = special_value(random, array.dtype);
        break;
      case Fill::values:
        value = input.values[i % input.values.size()];
        break;
      default:
        value = uniform(random, input.low, input.high);
    }
  }
}

}  // namespace

double rounded(double value, DType dtype) {
  return visit_dtype(dtype, [&]<class T>(T) {
    return static_cast<double>(static_cast<arithmetic_t<T>>(convert_element<T>(value)));
  });
}

std::vector<RefArray> make_inputs(const OpSample& sample, DType dtype, std::uint64_t seed) {
  Random random(seed);
  std::vector<RefArray> arrays;
  for (const auto& input : sample.inputs) {
    RefArray array{input.shape, input.dtype.value_or(dtype), {}, input.present};
    array.values.resize(static_cast<std::size_t>(input.shape.numel()));
    fill(input, random, array);
    for (auto& value : array.values) value = rounded(value, array.dtype);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

OpSpec spec_of(const OpDef& op, const std::vector<RefArray>& inputs, const Attributes& attributes) {
  OpSpec spec{op, {}, attributes};
  for (const auto& input : inputs) spec.inputs.push_back({input.shape, input.dtype, input.present});
  return spec;
}

std::vector<RefArray> run_reference(const OpDef& op, const std::vector<RefArray>& inputs,
                                    const Attributes& attributes) {
  std::vector<RefArray> outputs;
  for (const auto& spec : op.infer(spec_of(op, inputs, attributes))) {
    RefArray output{spec.shape, spec.dtype, {}};
    output.values.resize(static_cast<std::size_t>(spec.shape.numel()));
    outputs.push_back(std::move(output));
  }
  RefCall call{attributes, inputs, outputs};
  op.reference(call);
  return outputs;
}

HostArray to_host_array(const RefArray& array) {
  HostArray host(array.shape, array.dtype);
  visit_dtype(array.dtype, [&]<class T>(T) {
    auto values = host.values<T>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = convert_element<T>(array.values[i]);
  });
  return host;
}

}  // namespace netcl::selftest_detail
