// What pooling is tried on.
#include "base/format.h"
#include "ops/pool/geometry.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Problem {
  std::string id;
  Sizes x;
  Attributes attributes;
};

struct Row {
  Sizes x, window, stride, padding;
};

std::vector<Problem> windowed_problems(bool max) {
  const Row rows[] = {
      {{1, 1, 1, 1}, {1, 1}, {1, 1}, {0, 0}},   {{1, 1, 4, 4}, {2, 2}, {2, 2}, {0, 0}},
      {{2, 3, 8, 8}, {2, 2}, {2, 2}, {0, 0}},   {{2, 3, 7, 5}, {3, 3}, {1, 1}, {1, 1}},
      {{2, 3, 7, 5}, {3, 3}, {2, 2}, {1, 1}},   {{1, 2, 7, 9}, {3, 2}, {2, 1}, {1, 0}},
      {{1, 2, 7, 9}, {2, 3}, {1, 2}, {0, 1}},   {{1, 1, 5, 5}, {5, 5}, {1, 1}, {0, 0}},
      {{1, 1, 5, 5}, {5, 5}, {5, 5}, {2, 2}},   {{1, 1, 3, 3}, {7, 7}, {1, 1}, {2, 2}},
      {{1, 1, 3, 3}, {4, 4}, {3, 3}, {2, 2}},   {{1, 1, 11, 13}, {2, 2}, {5, 3}, {0, 0}},
      {{1, 1, 11, 13}, {2, 2}, {5, 3}, {1, 1}}, {{1, 2, 1, 17}, {1, 4}, {1, 3}, {0, 2}},
      {{1, 2, 17, 1}, {4, 1}, {3, 1}, {2, 0}},  {{0, 3, 4, 4}, {2, 2}, {2, 2}, {0, 0}},
      {{2, 0, 4, 4}, {2, 2}, {2, 2}, {0, 0}},   {{1, 5, 16, 16}, {3, 3}, {2, 2}, {1, 1}},
      {{2, 1, 33, 31}, {3, 5}, {2, 3}, {1, 2}}, {{1, 1, 6, 6}, {1, 1}, {2, 2}, {0, 0}},
      {{3, 2, 9, 9}, {9, 1}, {1, 1}, {0, 0}},   {{3, 2, 9, 9}, {1, 9}, {1, 1}, {0, 4}},
      {{1, 3, 15, 17}, {2, 2}, {2, 2}, {0, 0}}, {{1, 1, 16, 33}, {3, 3}, {1, 2}, {1, 0}},
      {{2, 7, 4, 4}, {2, 2}, {1, 1}, {1, 1}},   {{1, 1, 65, 2}, {3, 2}, {2, 1}, {1, 1}},
      {{1, 1, 2, 65}, {2, 3}, {1, 2}, {1, 1}},  {{5, 1, 6, 7}, {6, 7}, {1, 1}, {0, 0}},
      {{1, 2, 8, 8}, {4, 4}, {4, 4}, {0, 0}},   {{1, 2, 9, 8}, {4, 3}, {2, 2}, {2, 1}},
      {{1, 1, 257, 1}, {2, 1}, {2, 1}, {0, 0}}, {{0, 0, 5, 5}, {3, 3}, {1, 1}, {1, 1}},
      {{3, 7, 12, 26}, {3, 3}, {2, 2}, {1, 1}}, {{1, 1, 3, 1100}, {2, 3}, {1, 2}, {0, 1}},
      {{1, 1, 4, 600}, {3, 5}, {1, 1}, {1, 2}}, {{1, 2, 5, 90}, {2, 20}, {1, 1}, {0, 3}},
      {{1, 2, 5, 90}, {2, 5}, {1, 4}, {1, 1}}};
  std::vector<Problem> all;
  for (const auto& row : rows)
    for (int count = 0; count <= (max ? 0 : 1); ++count) {
      Problem problem{
          fmt::format("{}_by_{}_stride{}_padding{}", join(row.x, "x"), join(row.window, "x"),
                      join(row.stride, "x"), join(row.padding, "x")),
          row.x,
          {{"window", row.window}, {"stride", row.stride}, {"padding", row.padding}}};
      if (!max) problem.attributes.set("count_padding", count != 0);
      if (!max && count == 0) problem.id += "_inside";
      all.push_back(std::move(problem));
    }
  return all;
}

std::vector<Problem> adaptive_problems() {
  const std::pair<Sizes, Sizes> rows[] = {
      {{1, 1, 1, 1}, {1, 1}},    {{2, 3, 7, 7}, {1, 1}},      {{2, 3, 7, 5}, {7, 5}},
      {{2, 3, 7, 5}, {3, 2}},    {{1, 2, 8, 8}, {4, 4}},      {{1, 2, 8, 8}, {3, 5}},
      {{1, 1, 2, 3}, {5, 7}},    {{1, 1, 13, 17}, {6, 4}},    {{0, 2, 4, 4}, {2, 2}},
      {{1, 0, 4, 4}, {2, 2}},    {{1, 2, 1, 10}, {1, 3}},     {{1, 2, 10, 1}, {4, 2}},
      {{2, 5, 11, 9}, {10, 8}},  {{1, 1, 31, 33}, {7, 7}},    {{3, 1, 3, 3}, {4, 4}},
      {{1, 1, 1, 1}, {3, 3}},    {{1, 3, 5, 5}, {5, 1}},      {{1, 3, 5, 5}, {1, 5}},
      {{2, 1, 15, 16}, {4, 5}},  {{2, 1, 17, 16}, {16, 15}},  {{1, 2, 16, 17}, {3, 3}},
      {{1, 1, 31, 2}, {16, 3}},  {{1, 17, 3, 2}, {2, 2}},     {{5, 3, 2, 7}, {1, 4}},
      {{1, 1, 63, 3}, {8, 2}},   {{1, 1, 1, 65}, {1, 16}},    {{1, 1, 257, 1}, {17, 1}},
      {{2, 2, 6, 6}, {6, 3}},    {{1, 3, 9, 4}, {9, 2}},      {{7, 1, 4, 5}, {3, 3}},
      {{1, 2, 2, 2}, {5, 1}},    {{0, 0, 3, 3}, {2, 2}},      {{3, 7, 14, 24}, {7, 12}},
      {{1, 1, 3, 2500}, {2, 2}}, {{1, 1, 2, 1300}, {1, 600}}, {{1, 2, 3, 40}, {2, 700}},
      {{2, 1, 90, 67}, {1, 1}}};
  std::vector<Problem> all;
  for (const auto& [x, size] : rows)
    all.push_back({fmt::format("{}_to_{}", join(x, "x"), join(size, "x")), x, {{"size", size}}});
  return all;
}

std::vector<Problem> problems(bool max, bool adaptive) {
  return adaptive ? adaptive_problems() : windowed_problems(max);
}

// Positions that max pooling could have found: one pixel of each window, not always the same.
std::vector<double> some_positions(const PoolGeometry& g) {
  std::vector<double> positions;
  std::int64_t turn = 0;
  for (std::int64_t oh = 0; oh < g.rows.out; ++oh)
    for (std::int64_t ow = 0; ow < g.columns.out; ++ow, turn += 7) {
      const auto h = g.rows.begin(oh) + turn % (g.rows.end(oh) - g.rows.begin(oh));
      const auto w = g.columns.begin(ow) + turn / 3 % (g.columns.end(ow) - g.columns.begin(ow));
      positions.push_back(static_cast<double>(h * g.columns.in + w));
    }
  return positions;
}

}  // namespace

std::vector<OpSample> pool_samples(bool max, bool adaptive) {
  std::vector<OpSample> all;
  for (const auto& problem : problems(max, adaptive))
    all.push_back({problem.id, {{Shape(problem.x), Fill::distinct, -1, 1}}, problem.attributes});
  OpSample special{"special", {{{2, 2, 9, 11}, Fill::special}}, {}, false, kFloats};
  special.attributes =
      adaptive
          ? Attributes{{"size", Sizes{4, 5}}}
          : Attributes{{"window", Sizes{2, 3}}, {"stride", Sizes{1, 2}}, {"padding", Sizes{1, 1}}};
  // Sums of the largest numbers overflow or not, depending on the accumulator: maxima only.
  if (max) all.push_back(special);
  OpSample equal{"equal", {{{1, 2, 8, 8}, Fill::integers, 0, 1}}, special.attributes, false};
  if (max) all.push_back(equal);
  if (max && adaptive)
    for (auto* sample : {&special, &equal}) {
      sample->id += "_in_one_window";
      sample->attributes.set("size", Sizes{1, 1});
      all.push_back(*sample);
    }
  return all;
}

std::vector<OpSample> pool_backward_samples(bool max, bool adaptive) {
  std::vector<OpSample> all;
  for (const auto& problem : problems(max, adaptive)) {
    const auto g = pool_geometry("pool", Shape(problem.x), problem.attributes);
    const Shape dy{problem.x[0], problem.x[1], g.rows.out, g.columns.out};
    OpSample sample{problem.id, {{dy, Fill::uniform, -1, 1}}, problem.attributes};
    sample.attributes.set("image", Sizes{problem.x[2], problem.x[3]});
    if (max) sample.inputs.push_back({dy, Fill::values, 0, 0, DType::int32, some_positions(g)});
    all.push_back(std::move(sample));
  }
  return all;
}

}  // namespace netcl
