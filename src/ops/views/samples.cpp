#include "ops/views/samples.h"

#include "base/format.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;

std::string id_of(const Sizes& sizes) { return sizes.empty() ? "scalar" : join(sizes, "x"); }

// Distinct values show an element at the wrong place; bool needs both of its own.
void add(std::vector<OpSample>& all, const std::string& id, const Sizes& from,
         const Attributes& attributes) {
  OpSample sample{id, {{Shape(from), Fill::distinct, -100, 100}}, attributes};
  sample.dtypes = kFloatsAndInts;
  all.push_back(sample);
  sample.id = id + "_bits";
  sample.inputs[0] = {Shape(from), Fill::integers, 0, 1};
  sample.dtypes = {DType::boolean};
  sample.gradient = false;
  all.push_back(sample);
}

}  // namespace

std::vector<OpSample> reshape_samples() {
  const std::pair<Sizes, Sizes> pairs[] = {{{}, {}},
                                           {{}, {1, 1}},
                                           {{1}, {}},
                                           {{12}, {3, 4}},
                                           {{3, 4}, {12}},
                                           {{3, 4}, {4, 3}},
                                           {{2, 3, 5}, {6, 5}},
                                           {{2, 3, 5}, {2, 15}},
                                           {{2, 3, 5}, {-1}},
                                           {{2, 3, 5}, {5, -1}},
                                           {{6, 5}, {2, -1, 5}},
                                           {{0}, {0, 7}},
                                           {{0, 3}, {3, 0}},
                                           {{0, 3}, {-1, 3}},
                                           {{7, 1, 11}, {77}},
                                           {{7, 1, 11}, {1, 7, 11, 1}},
                                           {{2, 2, 2, 2, 2, 2, 2, 2}, {16, 16}}};
  std::vector<OpSample> all;
  for (const auto& [from, to] : pairs)
    add(all, fmt::format("{}_to_{}", id_of(from), id_of(to)), from, {{"sizes", to}});
  return all;
}

std::vector<OpSample> transpose_samples() {
  struct Row {
    Sizes shape;
    std::int64_t a, b;
  };
  const Row rows[] = {{{3, 5}, -2, -1},   {{3, 5}, 0, 1},        {{3, 5}, 1, 1},
                      {{2, 3, 5}, 0, 2},  {{2, 3, 5}, -3, -2},   {{2, 3, 5}, -1, 0},
                      {{0, 4}, 0, 1},     {{1, 7}, 0, 1},        {{7}, 0, -1},
                      {{17, 19}, -2, -1}, {{2, 3, 4, 5}, 1, -2}, {{2, 1, 3, 1, 5}, 0, 4},
                      {{33, 65}, -2, -1}};
  std::vector<OpSample> all;
  for (const auto& row : rows)
    add(all, fmt::format("{}_{}_{}", id_of(row.shape), row.a, row.b), row.shape,
        {{"a", row.a}, {"b", row.b}});
  return all;
}

std::vector<OpSample> permute_samples() {
  const std::pair<Sizes, Sizes> pairs[] = {{{}, {}},
                                           {{7}, {0}},
                                           {{7}, {-1}},
                                           {{3, 5}, {1, 0}},
                                           {{3, 5}, {0, 1}},
                                           {{2, 3, 5}, {2, 0, 1}},
                                           {{2, 3, 5}, {1, 2, 0}},
                                           {{2, 3, 5}, {-1, -3, -2}},
                                           {{2, 3, 5}, {0, 1, 2}},
                                           {{2, 3, 4, 5}, {0, 2, 3, 1}},
                                           {{2, 3, 4, 5}, {0, 3, 1, 2}},
                                           {{0, 3, 2}, {2, 1, 0}},
                                           {{2, 1, 3, 1, 2}, {4, 3, 2, 1, 0}},
                                           {{2, 2, 2, 2, 2, 2, 2}, {3, 1, 6, 0, 5, 2, 4}},
                                           {{13, 11, 3}, {2, 1, 0}}};
  std::vector<OpSample> all;
  for (const auto& [shape, axes] : pairs)
    add(all, fmt::format("{}_{}", id_of(shape), join(axes, "_")), shape, {{"axes", axes}});
  return all;
}

std::vector<OpSample> expand_samples() {
  const std::pair<Sizes, Sizes> pairs[] = {{{}, {}},
                                           {{}, {3, 2}},
                                           {{1}, {7}},
                                           {{7}, {7}},
                                           {{7}, {5, 7}},
                                           {{5, 1}, {5, 3}},
                                           {{1, 5}, {3, 5}},
                                           {{1, 1}, {4, 4}},
                                           {{1}, {0}},
                                           {{0}, {3, 0}},
                                           {{2, 1, 3}, {2, 5, 3}},
                                           {{2, 1, 3}, {4, 2, 5, 3}},
                                           {{3, 1}, {1, 2, 1, 3, 1}},
                                           {{1, 17}, {19, 17}}};
  std::vector<OpSample> all;
  for (const auto& [from, to] : pairs)
    add(all, fmt::format("{}_to_{}", id_of(from), id_of(to)), from, {{"shape", to}});
  return all;
}

std::vector<OpSample> narrow_samples() {
  struct Row {
    Sizes shape;
    std::int64_t axis, start, length;
  };
  const Row rows[] = {
      {{7}, 0, 0, 7},     {{7}, 0, 2, 3},       {{7}, -1, 6, 1},         {{7}, 0, 7, 0},
      {{7}, 0, 3, 0},     {{5, 7}, 0, 1, 3},    {{5, 7}, 1, 1, 3},       {{5, 7}, -1, 4, 3},
      {{5, 7}, -2, 4, 1}, {{2, 5, 3}, 1, 2, 2}, {{2, 5, 3}, -2, 0, 1},   {{0, 4}, 1, 1, 2},
      {{0, 4}, 0, 0, 0},  {{17, 19}, 1, 3, 13}, {{2, 3, 4, 5}, 2, 1, 3}, {{1, 1, 1}, 1, 0, 1}};
  std::vector<OpSample> all;
  for (const auto& row : rows)
    add(all, fmt::format("{}_axis{}_{}+{}", id_of(row.shape), row.axis, row.start, row.length),
        row.shape, {{"axis", row.axis}, {"start", row.start}, {"length", row.length}});
  return all;
}

}  // namespace netcl
