// topk along an axis, and its gradient.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/format.h"
#include "ops/dispatch.h"
#include "ops/softmax/family.h"
#include "ops/softmax/host_rows.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/softmax/topk.cl";

Shape with_size(const Shape& shape, std::int64_t axis, std::int64_t size) {
  auto sizes = shape.sizes();
  sizes[static_cast<std::size_t>(axis)] = size;
  return Shape(std::move(sizes));
}

std::int64_t checked_axis(const OpSpec& spec) {
  const auto axis = spec.attributes.integer("axis"), rank = spec.shape(0).rank();
  check<ShapeError>(axis >= 0 && axis < rank, "[{}] axis {} is out of range for rank {}",
                    spec.op.name, axis, rank);
  return axis;
}

void check_number(const OpSpec& spec) {
  const auto dtype = spec.dtype();
  check<DtypeError>((is_floating(dtype) && dtype != DType::bfloat16) || dtype == DType::int32 ||
                        dtype == DType::int64,
                    "[{}] the dtype must be float16, float32, float64, int32 or int64: {}",
                    spec.op.name, name_of(dtype));
}

std::vector<TensorSpec> infer(const OpSpec& spec) {
  check_number(spec);
  const auto axis = checked_axis(spec), k = spec.attributes.integer("k");
  check<ShapeError>(k >= 0 && k <= spec.shape(0)[axis],
                    "[{}] k must be between 0 and the {} elements of axis {}: {}", spec.op.name,
                    spec.shape(0)[axis], axis, k);
  const auto shape = with_size(spec.shape(0), axis, k);
  return {{shape, spec.dtype()}, {shape, DType::int64}};
}

RowPlan plan_of(const OpCall& call) {
  return plan_rows(call.inputs[0].shape(), call.attributes.integer("axis"));
}

void run(const OpCall& call, Team team) {
  const auto plan = plan_of(call);
  if (team == Team::item && topk_on_cpu(call, plan)) return;
  const auto kernel = team_kernel(call.queue, kPath, "topk", call.dtype(), team);
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.outputs[0]).tensor(call.outputs[1]);
  args.value(plan.outer).value(plan.n).value(plan.inner).value(call.attributes.integer("k"));
  args.value(static_cast<std::int32_t>(call.attributes.flag("largest") ? 1 : 0));
  enqueue_teams(call.queue, kernel, args, team, plan.rows());
}

template <class V>
bool is_better(V a, V b, bool largest) {
  const bool nan_a = a != a, nan_b = b != b;
  if (nan_a || nan_b) return largest ? nan_a && !nan_b : nan_b && !nan_a;
  return largest ? a > b : a < b;
}

// The first k of a row in their order, for few k: most elements are no better than the last of
// them, which is found out for several at once.
template <class V, class F>
void first_of(std::int64_t n, std::int64_t k, bool largest, F&& value,
              std::vector<std::pair<V, std::int64_t>>& best) {
  constexpr std::int64_t kBlock = 32;
  best.clear();
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const auto end = std::min(n, begin + kBlock);
    if (std::ssize(best) == k) {
      const V last = best.back().first;
      int any = 0;
      if (largest)
        for (auto i = begin; i < end; ++i) any |= static_cast<int>(!(value(i) <= last));
      else
        for (auto i = begin; i < end; ++i) any |= static_cast<int>(!(value(i) >= last));
      if (any == 0) continue;
    }
    for (auto i = begin; i < end; ++i) {
      const V v = value(i);
      const bool is_full = std::ssize(best) == k;
      if (is_full && !is_better(v, best.back().first, largest)) continue;
      if (!is_full) best.emplace_back();
      auto at = best.size() - 1;
      for (; at > 0 && is_better(v, best[at - 1].first, largest); --at) best[at] = best[at - 1];
      best[at] = {v, i};
    }
  }
}

void host(const OpCall& call) {
  const auto plan = plan_of(call);
  const auto k = call.attributes.integer("k");
  const bool largest = call.attributes.flag("largest");
  constexpr std::int64_t kFew = 64;
  if (k == 0) return;
  visit_dtype(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    for_rows(plan, [&](std::int64_t row, std::int64_t start) {
      const T* x = input_data<T>(call, 0) + start;
      const auto out = row / plan.inner * k * plan.inner + row % plan.inner;
      const auto store = [&](std::int64_t r, std::int64_t i) {
        output_data<T>(call, 0)[out + r * plan.inner] = x[i * plan.inner];
        output_data<std::int64_t>(call, 1)[out + r * plan.inner] = i;
      };
      const auto value = [&](std::int64_t i) { return static_cast<V>(x[i * plan.inner]); };
      if (k <= kFew) {
        thread_local std::vector<std::pair<V, std::int64_t>> best;
        if (plan.inner == 1)
          first_of(
              plan.n, k, largest, [x](std::int64_t i) { return static_cast<V>(x[i]); }, best);
        else
          first_of(plan.n, k, largest, value, best);
        for (std::int64_t r = 0; r < k; ++r) store(r, best[static_cast<std::size_t>(r)].second);
        return;
      }
      std::vector<std::int64_t> order(static_cast<std::size_t>(plan.n));
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(),
                        [&](std::int64_t a, std::int64_t b) {
                          if (is_better(value(a), value(b), largest)) return true;
                          return !is_better(value(b), value(a), largest) && a < b;
                        });
      for (std::int64_t r = 0; r < k; ++r) store(r, order[static_cast<std::size_t>(r)]);
    });
  });
}

// Takes the best of what is left, k times.
void reference(RefCall& call) {
  const auto plan = plan_rows(call.inputs[0].shape, call.attributes.integer("axis"));
  const auto k = call.attributes.integer("k");
  const bool largest = call.attributes.flag("largest");
  for (std::int64_t row = 0; row < plan.rows(); ++row) {
    std::vector<bool> taken(static_cast<std::size_t>(plan.n));
    for (std::int64_t r = 0; r < k; ++r) {
      std::int64_t best = -1;
      const auto at = [&](std::int64_t i, std::int64_t n) {
        return static_cast<std::size_t>((row / plan.inner * n + i) * plan.inner + row % plan.inner);
      };
      const auto& x = call.inputs[0].values;
      for (std::int64_t i = 0; i < plan.n; ++i)
        if (!taken[static_cast<std::size_t>(i)] &&
            (best < 0 || is_better(x[at(i, plan.n)], x[at(best, plan.n)], largest)))
          best = i;
      taken[static_cast<std::size_t>(best)] = true;
      call.outputs[0].values[at(r, k)] = x[at(best, plan.n)];
      call.outputs[1].values[at(r, k)] = static_cast<double>(best);
    }
  }
}

OpSample sample_of(const Shape& shape, std::int64_t axis, std::int64_t k, bool largest) {
  return {fmt::format("{}_axis{}_k{}{}", join(shape.sizes(), "x"), axis, k, largest ? "" : "_min"),
          {{shape, Fill::distinct, -500, 500}},
          {{"axis", axis}, {"k", k}, {"largest", largest}}};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> all;
  const auto add = [&](const Shape& shape, std::int64_t axis, std::int64_t k, bool largest = true) {
    all.push_back(sample_of(shape, axis, k, largest));
  };
  for (const std::int64_t n : {1, 2, 7, 15, 16, 17, 33, 63, 65, 257, 300})
    add({3, n}, 1, std::min<std::int64_t>(n, 5));
  add({3, 17}, 1, 17), add({3, 17}, 1, 4, false), add({3, 17}, 1, 0), add({5, 4}, 0, 2);
  add({2, 9, 5}, 1, 3), add({2, 9, 5}, 1, 3, false), add({0, 4}, 1, 2), add({31}, 0, 31, false);
  add({70, 3}, 1, 1), add({2, 3, 4, 5}, 2, 4);
  add({1, 1}, 1, 1, false), add({5, 4}, 0, 4, false), add({2, 9, 5}, 2, 5), add({2, 9, 5}, 0, 1);
  add({2, 3, 4, 5}, 3, 2, false), add({2, 3, 4, 5}, 0, 2), add({129}, 0, 16);
  add({300, 2}, 1, 2, false);
  // Lanes of whole vectors and of parts of one, parts of rows, bounds, and sorting.
  for (const bool largest : {true, false}) {
    add({37, 9}, 1, 8, largest), add({3, 21, 37}, 1, 8, largest), add({3, 90, 5}, 1, 3, largest);
    add({3, 601}, 1, 7, largest), add({3, 601}, 1, 29, largest), add({5, 301}, 1, 64, largest);
    add({2, 301}, 1, 65, largest), add({17, 130}, 1, 130, largest), add({2, 70, 3}, 1, 66, largest);
  }
  add({40'001}, 0, 9), add({1, 70'001}, 1, 64, false);
  for (const bool largest : {true, false}) {
    const Attributes attributes{
        {"axis", std::int64_t{1}}, {"k", std::int64_t{11}}, {"largest", largest}};
    all.push_back(
        {largest ? "ties" : "ties_min", {{{4, 40}, Fill::integers, -2, 2}}, attributes, false});
    for (const std::int64_t n : {200, 700})
      for (const std::int64_t k : {3, 11, 70}) {
        auto more = attributes;
        more.set("k", k);
        const auto id = fmt::format("{}of{}{}", k, n, largest ? "" : "_min");
        all.push_back({"ties_" + id, {{{4, n}, Fill::integers, -2, 2}}, more, false});
        all.push_back({"special_" + id, {{{4, n}, Fill::special}}, more, false, kFloats});
      }
    all.push_back({largest ? "special" : "special_min",
                   {{{6, 23}, Fill::special}},
                   attributes,
                   false,
                   kFloats});
  }
  return all;
}

// ---- the gradient

std::vector<TensorSpec> infer_backward(const OpSpec& spec) {
  check_floating(spec);
  const auto axis = checked_axis(spec);
  return {{with_size(spec.shape(0), axis, spec.attributes.integer("size")), spec.dtype()}};
}

RowPlan backward_plan(const OpCall& call) {
  return plan_rows(call.outputs[0].shape(), call.attributes.integer("axis"));
}

void run_backward(const OpCall& call, const VariantRun&) {
  const auto plan = backward_plan(call);
  const auto kernel = team_kernel(call.queue, kPath, "topk_backward", call.dtype(), Team::item);
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.inputs[1]).tensor(call.outputs[0]);
  args.value(plan.outer).value(plan.n).value(plan.inner);
  args.value(call.inputs[0].shape()[call.attributes.integer("axis")]);
  enqueue_items(call.queue, kernel, args, plan.rows());
}

// Places go from (row, r) of dy to (row, index) of dx; `put` moves one element.
template <class Index, class Put>
void scatter(const RowPlan& plan, std::int64_t k, Index&& index, Put&& put) {
  for (std::int64_t row = 0; row < plan.rows(); ++row)
    for (std::int64_t r = 0; r < k; ++r) {
      const auto o = row / plan.inner, j = row % plan.inner;
      const auto from = (o * k + r) * plan.inner + j;
      put(from, (o * plan.n + index(from)) * plan.inner + j);
    }
}

void host_backward(const OpCall& call) {
  const auto k = call.inputs[0].shape()[call.attributes.integer("axis")];
  visit_floating(call.dtype(), [&]<class T>(T) {
    T* dx = output_data<T>(call, 0);
    std::fill_n(dx, call.outputs[0].numel(), T{});
    scatter(
        backward_plan(call), k,
        [&](std::int64_t at) { return input_data<std::int64_t>(call, 1)[at]; },
        [&](std::int64_t from, std::int64_t to) { dx[to] = input_data<T>(call, 0)[from]; });
  });
}

void reference_backward(RefCall& call) {
  const auto axis = call.attributes.integer("axis");
  scatter(
      plan_rows(call.outputs[0].shape, axis), call.inputs[0].shape[axis],
      [&](std::int64_t at) {
        return static_cast<std::int64_t>(call.inputs[1].values[static_cast<std::size_t>(at)]);
      },
      [&](std::int64_t from, std::int64_t to) {
        call.outputs[0].values[static_cast<std::size_t>(to)] =
            call.inputs[0].values[static_cast<std::size_t>(from)];
      });
}

// Indices that differ within a row: counted down along the axis.
OpSample backward_sample(const Shape& shape, std::int64_t axis, std::int64_t size) {
  SampleInput dy{shape}, indices{shape, Fill::values};
  indices.dtype = DType::int64;
  const auto plan = plan_rows(shape, axis);
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    indices.values.push_back(static_cast<double>(size - 1 - i / plan.inner % plan.n));
  return {fmt::format("{}_axis{}_of_{}", join(shape.sizes(), "x"), axis, size),
          {dy, indices},
          {{"axis", axis}, {"size", size}}};
}

std::vector<OpSample> backward_samples() {
  auto mixed = backward_sample({3, 5}, 0, 7);
  mixed.id = "mixed_indices";
  mixed.inputs[1].values = {4, 0, 1, 2, 3, 0, 1, 2, 3, 4, 6, 6, 5, 5, 5};
  std::vector<OpSample> all{mixed};
  const std::array<std::int64_t, 3> rows[] = {
      // rows, k, size
      {1, 1, 1},   {3, 2, 5},   {3, 0, 5},   {2, 17, 17}, {0, 2, 4},   {70, 1, 9},
      {5, 5, 65},  {4, 3, 300}, {600, 2, 4}, {2, 31, 33}, {1, 2, 3},   {2, 1, 2},
      {3, 15, 16}, {3, 16, 17}, {3, 17, 31}, {1, 33, 65}, {5, 1, 257}, {63, 3, 5},
      {64, 2, 3},  {65, 1, 2},  {1, 63, 63}, {0, 0, 3},   {13, 11, 17}};
  for (const auto& [count, k, size] : rows) all.push_back(backward_sample({count, k}, 1, size));
  all.push_back(backward_sample({1}, 0, 1031));
  all.push_back(backward_sample({2, 33}, 0, 2));
  all.push_back(backward_sample({16, 3}, 0, 17));
  all.push_back(backward_sample({2, 3, 5}, 0, 4));
  all.push_back(backward_sample({2, 3, 5}, 1, 7));
  all.push_back(backward_sample({2, 0, 5}, 1, 7));
  all.push_back(backward_sample({2, 3, 1, 5}, 2, 4));
  return all;
}

}  // namespace

std::vector<OpDef> topk_ops() {
  OpDef op;
  op.name = "topk";
  op.summary = "the k largest or smallest along an axis, and where they are";
  op.dtypes = kFloatsAndInts;
  op.infer = infer;
  op.reference = reference;
  op.host = host;
  set_row_variants(op, "topk.item", "topk.group", kPath, plan_of, run);
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    const auto axis = g.attributes.integer("axis");
    return {apply("topk_backward", {g.dy(), g.outputs[1]},
                  {{"axis", axis}, {"size", g.inputs[0].shape()[axis]}})};
  };
  op.saves = SavedTensors::always(0, 2);
  op.samples = samples;
  op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
  op.tolerance_reason = "values are only moved";

  OpDef backward;
  backward.name = "topk_backward";
  backward.summary = "the gradient of topk: dy at the indices, 0 elsewhere";
  backward.dtypes = kFloats;
  backward.infer = infer_backward;
  backward.reference = reference_backward;
  backward.host = host_backward;
  backward.variants = {{"topk_backward.rows", "", kPath, nullptr, run_backward}};
  backward.samples = backward_samples;
  backward.tolerance = op.tolerance;
  backward.tolerance_reason = op.tolerance_reason;
  return {op, backward};
}

}  // namespace netcl
