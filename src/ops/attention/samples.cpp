#include "ops/attention/samples.h"

#include <cmath>

#include "base/format.h"

namespace netcl {
namespace {

enum class Mask { none, boolean, added };

struct Problem {
  Shape batch;
  std::int64_t L, S, E, F;
  Mask mask = Mask::none;
  Shape mask_shape = {};
  bool causal = false;
};

Shape with(const Shape& batch, std::int64_t rows, std::int64_t columns) {
  auto sizes = batch.sizes();
  sizes.push_back(rows);
  sizes.push_back(columns);
  return Shape(std::move(sizes));
}

OpSample sample_of(const Problem& p) {
  OpSample sample;
  sample.id =
      fmt::format("{}{}q{}k{}e{}f{}{}{}", join(p.batch, "x"), p.batch.empty() ? "" : "_", p.L, p.S,
                  p.E, p.F, p.mask == Mask::none ? "" : "_mask" + join(p.mask_shape, "x"),
                  p.mask == Mask::boolean ? "b" : "");
  if (p.causal) sample.id += "_causal";
  sample.inputs = {{with(p.batch, p.L, p.E)},
                   {with(p.batch, p.S, p.E)},
                   {with(p.batch, p.S, p.F)},
                   {p.mask_shape}};
  auto& mask = sample.inputs[3];
  mask.present = p.mask != Mask::none;
  if (p.mask == Mask::boolean) {
    // Most keys take part; the first always does, so that no row is empty.
    mask.fill = Fill::values;
    mask.dtype = DType::boolean;
    const auto S = p.mask_shape.empty() ? 1 : p.mask_shape[p.mask_shape.rank() - 1];
    for (std::int64_t i = 0; i < p.mask_shape.numel(); ++i)
      mask.values.push_back(i % S == 0 || i * 7 % 5 != 0 ? 1 : 0);
  }
  sample.attributes = {{"causal", p.causal}, {"scale", 1 / std::sqrt(static_cast<double>(p.E))}};
  return sample;
}

std::vector<Problem> problems() {
  return {
      {{}, 1, 1, 1, 1},
      {{}, 1, 5, 3, 2},
      {{}, 7, 1, 4, 5},
      {{}, 5, 7, 3, 4},
      {{2}, 5, 7, 16, 8},
      {{2, 3}, 4, 6, 17, 5},
      {{1}, 33, 31, 8, 8},
      {{2}, 3, 65, 5, 7},
      {{3}, 65, 3, 2, 1},
      {{1, 2}, 13, 64, 32, 16},
      {{}, 2, 200, 7, 3},
      {{2}, 0, 3, 4, 5},
      {{2}, 3, 0, 4, 5},
      {{0}, 3, 2, 4, 5},
      {{}, 9, 9, 4, 4, Mask::none, {}, true},
      {{2}, 33, 33, 8, 4, Mask::none, {}, true},
      {{}, 5, 11, 4, 3, Mask::none, {}, true},
      {{2}, 70, 70, 3, 3, Mask::none, {}, true},
      {{}, 5, 7, 4, 3, Mask::boolean, {5, 7}},
      {{2, 3}, 5, 7, 4, 3, Mask::boolean, {5, 7}},
      {{2, 3}, 5, 7, 4, 3, Mask::boolean, {2, 1, 1, 7}},
      {{2, 3}, 5, 40, 4, 3, Mask::boolean, {2, 3, 5, 40}},
      {{2, 3}, 5, 7, 4, 3, Mask::boolean, {3, 1, 7}},
      {{}, 5, 7, 4, 3, Mask::added, {5, 7}},
      {{4}, 5, 7, 4, 3, Mask::added, {1, 7}},
      {{2, 3}, 5, 7, 4, 3, Mask::added, {2, 3, 5, 7}},
      {{2, 3, 2}, 5, 7, 4, 3, Mask::added, {2, 1, 2, 5, 7}},
      {{2}, 6, 6, 4, 3, Mask::added, {6, 6}, true},
      {{2}, 6, 6, 4, 3, Mask::boolean, {6, 6}, true},
      {{3, 2}, 3, 3, 2, 2, Mask::boolean, {3, 1, 3, 3}, true},
  };
}

// Several blocks of keys, several parts of the queries, and rests of all of them, on CPUs.
std::vector<Problem> large_problems() {
  return {
      {{2}, 61, 530, 20, 70},
      {{}, 300, 48, 33, 16},
      {{3}, 2, 700, 24, 40},
      {{}, 4, 300, 80, 1},
      {{}, 290, 290, 16, 40, Mask::none, {}, true},
      {{}, 30, 600, 5, 33, Mask::none, {}, true},
      {{2}, 600, 30, 8, 33, Mask::none, {}, true},
      {{2}, 50, 300, 9, 34, Mask::boolean, {50, 300}},
      {{2}, 50, 300, 9, 34, Mask::boolean, {2, 1, 300}},
      {{2}, 50, 300, 9, 34, Mask::added, {50, 1}},
      {{2}, 50, 300, 9, 34, Mask::added, {2, 50, 300}, true},
      {{2}, 1, 300, 9, 34, Mask::added, {1, 300}},
      {{2}, 1, 300, 36, 16, Mask::boolean, {2, 1, 300}},
  };
}

}  // namespace

std::vector<OpSample> attention_samples() {
  std::vector<OpSample> samples;
  for (const auto& problem : large_problems()) {
    samples.push_back(sample_of(problem));
    samples.back().gradient = false;  // differences of so many elements take long
  }
  for (const auto& problem : problems()) {
    samples.push_back(sample_of(problem));
    // Differences of an added mask would ask for its gradient, which attention does not give.
    if (problem.mask == Mask::added) samples.back().gradient = false;
    // The logarithm of an empty sum is infinite, and differences of it are not numbers.
    if (problem.S == 0) samples.back().gradient = false;
  }
  // A row that sees nothing has no weights: NaN.
  auto empty = sample_of({{}, 2, 3, 2, 2, Mask::boolean, {2, 3}});
  empty.id = "row_without_keys";
  empty.inputs[3].values = {0, 0, 0, 1, 0, 1};
  empty.gradient = false;
  samples.push_back(empty);
  return samples;
}

std::vector<OpSample> attention_backward_samples() {
  std::vector<OpSample> samples;
  auto all = problems();
  for (const auto& problem : large_problems()) all.push_back(problem);
  for (const auto& problem : all) {
    auto sample = sample_of(problem);
    const auto y = with(problem.batch, problem.L, problem.F);
    auto rows = problem.batch.sizes();
    rows.push_back(problem.L);
    sample.inputs.push_back({y});
    sample.inputs.push_back({Shape(rows), Fill::uniform, 1, 3});
    sample.inputs.push_back({y});
    sample.inputs.push_back({Shape(rows)});
    sample.inputs.back().present = samples.size() % 2 == 0;  // the gradient of lse
    sample.gradient = false;
    // `lse` is in the accumulator's dtype, which is the tensors' own in these.
    sample.dtypes = {DType::float32, DType::float64};
    samples.push_back(sample);
    if (samples.size() % 3 != 0) continue;
    sample.id += "_half";
    sample.inputs[5].dtype = sample.inputs[7].dtype = DType::float32;
    sample.dtypes = {DType::float16};
    samples.push_back(sample);
  }
  return samples;
}

}  // namespace netcl
