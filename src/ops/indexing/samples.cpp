#include "ops/indexing/samples.h"

#include "base/format.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;

std::string text(const Sizes& sizes) { return sizes.empty() ? "scalar" : join(sizes, "x"); }

SampleInput data(const Sizes& shape) { return {Shape(shape), Fill::distinct, -100, 100}; }

// About 1, as the tolerance of sums expects.
SampleInput terms(const Sizes& shape) { return {Shape(shape), Fill::uniform, -1.9, 1.9}; }

// Indices in [0, size), of both dtypes in turn.
SampleInput indices(const Sizes& shape, std::int64_t size, std::size_t turn) {
  return {Shape(shape), Fill::integers, 0, static_cast<double>(std::max<std::int64_t>(size - 1, 0)),
          turn % 2 == 0 ? DType::int64 : DType::int32};
}

struct AxisRow {
  Sizes shape;
  std::int64_t axis, count;
};

std::int64_t size_of_axis(const Sizes& shape, std::int64_t axis) {
  return shape[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size())
                                                 : axis)];
}

const AxisRow kRows[] = {{{1}, 0, 1},
                         {{7}, 0, 3},
                         {{7}, -1, 20},
                         {{5}, 0, 0},
                         {{0}, 0, 0},
                         {{5, 3}, 0, 4},
                         {{5, 3}, 1, 4},
                         {{5, 3}, -1, 1},
                         {{5, 3}, -2, 9},
                         {{5, 0}, 0, 2},
                         {{0, 5}, 1, 2},
                         {{2, 5, 3}, 0, 3},
                         {{2, 5, 3}, 1, 7},
                         {{2, 5, 3}, 2, 2},
                         {{2, 3, 4, 5}, 1, 6},
                         {{2, 3, 4, 5}, -1, 3},
                         {{17, 19}, 0, 23},
                         {{17, 19}, 1, 23},
                         {{64, 1}, 0, 65},
                         {{1, 64}, 0, 31},
                         {{3, 100}, 0, 257},
                         {{1, 1, 1}, 1, 5},
                         {{31}, 0, 33},
                         {{16, 15}, 0, 17},
                         {{16, 15}, 1, 17},
                         {{3, 1, 7}, 1, 2},
                         {{2, 3, 4, 5}, 0, 1},
                         {{2, 3, 4, 5}, -2, 13},
                         {{2, 2, 2, 2, 2}, 3, 5},
                         {{65, 2}, -2, 63},
                         {{0, 3}, 1, 0},
                         {{257}, 0, 16}};

// Enough for several work-items that own many elements; too many for numeric gradients.
const AxisRow kLarge[] = {
    {{6, 300}, 0, 90}, {{70, 3}, 0, 9000}, {{3, 40000}, 0, 2}, {{3, 9, 50}, 1, 400}};

// Every row as a sample of `inputs(row, size of its axis, number)`.
template <class Inputs>
void add_large(std::vector<OpSample>& all, Inputs&& inputs) {
  for (const auto& row : kLarge)
    all.push_back({fmt::format("{}_axis{}_{}", join(row.shape, "x"), row.axis, row.count),
                   inputs(row, size_of_axis(row.shape, row.axis), all.size()),
                   {{"axis", row.axis}},
                   false});
}

std::string id_of(const AxisRow& row) {
  return fmt::format("{}_axis{}_{}", text(row.shape), row.axis, row.count);
}

Sizes with_axis(Sizes shape, std::int64_t axis, std::int64_t size) {
  shape[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size())
                                          : axis)] = size;
  return shape;
}

// Shapes of per-element indices that are smaller than x on the other axes as well.
struct SmallRow {
  Sizes shape, indices;
  std::int64_t axis;
};
const SmallRow kSmall[] = {{{5, 7}, {3, 2}, 0},
                           {{5, 7}, {3, 9}, 1},
                           {{3, 4, 5}, {2, 6, 3}, 1},
                           {{3, 4, 5}, {1, 1, 1}, -1}};

}  // namespace

std::vector<OpSample> index_select_samples() {
  std::vector<OpSample> all;
  for (const auto& row : kRows)
    all.push_back(
        {id_of(row),
         {data(row.shape), indices({row.count}, size_of_axis(row.shape, row.axis), all.size())},
         {{"axis", row.axis}}});
  add_large(all, [](const AxisRow& row, std::int64_t size, std::size_t turn) {
    return std::vector{data(row.shape), indices({row.count}, size, turn)};
  });
  all.push_back({"special",
                 {{{67}, Fill::special}, indices({40}, 67, 0)},
                 {{"axis", std::int64_t{0}}},
                 false,
                 kFloats});
  return all;
}

std::vector<OpSample> gather_samples() {
  std::vector<OpSample> all;
  for (const auto& row : kRows)
    all.push_back({id_of(row),
                   {data(row.shape), indices(with_axis(row.shape, row.axis, row.count),
                                             size_of_axis(row.shape, row.axis), all.size())},
                   {{"axis", row.axis}}});
  for (const auto& row : kSmall)
    all.push_back(
        {fmt::format("{}_by_{}_axis{}", text(row.shape), text(row.indices), row.axis),
         {data(row.shape), indices(row.indices, size_of_axis(row.shape, row.axis), all.size())},
         {{"axis", row.axis}}});
  add_large(all, [](const AxisRow& row, std::int64_t size, std::size_t turn) {
    return std::vector{data(row.shape),
                       indices(with_axis(row.shape, row.axis, row.count), size, turn)};
  });
  return all;
}

std::vector<OpSample> embedding_samples() {
  const std::pair<Sizes, Sizes> rows[] = {{{}, {5, 3}},
                                          {{7}, {5, 3}},
                                          {{2, 3}, {11, 4}},
                                          {{2, 3, 4}, {3, 1}},
                                          {{0}, {5, 3}},
                                          {{0, 2}, {0, 3}},
                                          {{4}, {5, 0}},
                                          {{1}, {1, 1}},
                                          {{65}, {17, 63}},
                                          {{3, 43}, {101, 16}},
                                          {{257}, {3, 5}},
                                          {{16}, {64, 64}},
                                          {{}, {1, 1}},
                                          {{1}, {5, 7}},
                                          {{1, 1}, {2, 2}},
                                          {{15}, {16, 17}},
                                          {{16}, {17, 15}},
                                          {{17}, {15, 16}},
                                          {{31}, {2, 1}},
                                          {{33}, {1, 5}},
                                          {{63}, {64, 2}},
                                          {{2, 31}, {7, 33}},
                                          {{5, 1, 3}, {13, 7}},
                                          {{1, 2, 3, 4}, {6, 5}},
                                          {{2, 0, 3}, {4, 2}},
                                          {{3, 0}, {5, 0}},
                                          {{13}, {257, 3}},
                                          {{7}, {2, 257}},
                                          {{2, 2, 2, 2, 2}, {3, 3}},
                                          {{11}, {1, 63}}};
  std::vector<OpSample> all;
  for (const auto& [shape, table] : rows)
    all.push_back({fmt::format("{}_of_{}", text(shape), text(table)),
                   {indices(shape, table[0], all.size()), data(table)}});
  all.push_back({"special", {indices({40}, 9, 0), {{9, 5}, Fill::special}}, {}, false, kFloats});
  return all;
}

std::vector<OpSample> index_add_samples() {
  std::vector<OpSample> all;
  for (const auto& row : kRows)
    all.push_back(
        {id_of(row),
         {terms(row.shape), indices({row.count}, size_of_axis(row.shape, row.axis), all.size()),
          terms(with_axis(row.shape, row.axis, row.count))},
         {{"axis", row.axis}}});
  add_large(all, [](const AxisRow& row, std::int64_t size, std::size_t turn) {
    return std::vector{terms(row.shape), indices({row.count}, size, turn),
                       terms(with_axis(row.shape, row.axis, row.count))};
  });
  // Everything at one place.
  all.push_back({"one_place",
                 {terms({3, 5}), {{300}, Fill::values, 0, 0, DType::int64, {1}}, terms({300, 5})},
                 {{"axis", std::int64_t{0}}}});
  all.push_back({"special",
                 {{{9}, Fill::special}, indices({40}, 9, 0), {{40}, Fill::special}},
                 {{"axis", std::int64_t{0}}},
                 false,
                 kFloats});
  // Sums of the largest numbers depend on the order and the accumulator's range.
  all.back().inputs[2] = {{40}, Fill::values, 0, 0, {}, {1, 2, -1, 0.5, -3}};
  return all;
}

std::vector<OpSample> scatter_add_samples() {
  std::vector<OpSample> all;
  for (const auto& row : kRows) {
    const auto shape = with_axis(row.shape, row.axis, row.count);
    all.push_back({id_of(row),
                   {terms(row.shape), indices(shape, size_of_axis(row.shape, row.axis), all.size()),
                    terms(shape)},
                   {{"axis", row.axis}}});
  }
  for (const auto& row : kSmall)
    all.push_back(
        {fmt::format("{}_by_{}_axis{}", text(row.shape), text(row.indices), row.axis),
         {terms(row.shape), indices(row.indices, size_of_axis(row.shape, row.axis), all.size()),
          terms(row.indices)},
         {{"axis", row.axis}}});
  add_large(all, [](const AxisRow& row, std::int64_t size, std::size_t turn) {
    const auto shape = with_axis(row.shape, row.axis, row.count);
    return std::vector{terms(row.shape), indices(shape, size, turn), terms(shape)};
  });
  all.push_back({"one_place",
                 {terms({5}), {{300}, Fill::values, 0, 0, DType::int64, {4}}, terms({300})},
                 {{"axis", std::int64_t{0}}}});
  return all;
}

std::vector<OpSample> one_hot_samples() {
  std::vector<OpSample> all;
  const std::pair<Sizes, std::int64_t> rows[] = {{{}, 3},
                                                 {{1}, 1},
                                                 {{7}, 5},
                                                 {{2, 3}, 4},
                                                 {{0}, 5},
                                                 {{65}, 17},
                                                 {{3, 1, 5}, 2},
                                                 {{31}, 100},
                                                 {{1, 1}, 7},
                                                 {{2}, 1},
                                                 {{15}, 16},
                                                 {{16}, 15},
                                                 {{17}, 17},
                                                 {{33}, 2},
                                                 {{3, 11}, 31},
                                                 {{1, 65}, 3},
                                                 {{2, 3, 4, 5}, 6},
                                                 {{0, 3}, 2},
                                                 {{3, 0}, 4},
                                                 {{63}, 63},
                                                 {{257}, 3},
                                                 {{5}, 257},
                                                 {{2, 1, 2, 1, 2}, 5},
                                                 {{129}, 10}};
  const auto add = [&](const Sizes& shape, std::int64_t classes, DType dtype) {
    OpSample sample{fmt::format("{}_of_{}_{}", text(shape), classes, name_of(dtype)),
                    {{Shape(shape), Fill::integers, 0, static_cast<double>(classes - 1)}},
                    {{"classes", classes}, {"dtype", std::string(name_of(dtype))}}};
    all.push_back(std::move(sample));
  };
  for (const auto& [shape, classes] : rows) add(shape, classes, DType::float32);
  for (const auto dtype : {DType::float16, DType::bfloat16, DType::float64, DType::int8,
                           DType::uint8, DType::int32, DType::int64, DType::boolean})
    add({13}, 7, dtype);
  return all;
}

std::vector<OpSample> triangle_samples() {
  std::vector<OpSample> all;
  for (const auto& shape : {Sizes{5, 5}, Sizes{3, 7}, Sizes{7, 3}, Sizes{2, 4, 3}, Sizes{1, 1}})
    for (const std::int64_t diagonal : {-100, -2, -1, 0, 1, 3, 100})
      all.push_back({fmt::format("{}_diagonal{}", text(shape), diagonal),
                     {data(shape)},
                     {{"diagonal", diagonal}}});
  for (const auto& shape : {Sizes{0, 3}, Sizes{3, 0}, Sizes{2, 3, 5, 7}, Sizes{33, 65}})
    all.push_back({text(shape), {data(shape)}, {{"diagonal", std::int64_t{0}}}});
  all.push_back(
      {"special", {{{9, 9}, Fill::special}}, {{"diagonal", std::int64_t{0}}}, false, kFloats});
  return all;
}

}  // namespace netcl
