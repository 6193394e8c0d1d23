// Ops that work row by row: the plan, and the two ways to launch a kernel written with team.cl.
#pragma once

#include <functional>

#include "ops/kernels.h"
#include "ops/op.h"

namespace netcl {

// A tensor as rows along one axis.
struct RowPlan {
  std::int64_t outer = 1, n = 1, inner = 1;
  std::int64_t rows() const { return outer * inner; }
};
RowPlan plan_rows(const Shape& shape, std::int64_t axis);

enum class Team { item, group };

// Gives an op the variants "x.item" and "x.group" (literals) and the selector's problem: its rules
// for "rowwise" choose between them.
using TeamRun = std::function<void(const OpCall& call, Team team)>;
void set_row_variants(OpDef& op, const char* item, const char* group, const char* path,
                      const std::function<RowPlan(const OpCall&)>& plan, const TeamRun& run);

// A kernel of a file that includes team.cl; `more` is added to the defines, told apart by `bits`.
KernelPtr team_kernel(const Queue& queue, const char* path, const char* kernel, DType dtype,
                      Team team, std::int64_t bits = 0, const std::string& more = {});
// One team per row.
void enqueue_teams(const Queue& queue, const KernelPtr& kernel, const OpArgs& args, Team team,
                   std::int64_t rows);
// One work-item per element.
void enqueue_items(const Queue& queue, const KernelPtr& kernel, const OpArgs& args,
                   std::int64_t items);

// On a CPU rows whose elements lie one after the other are computed in vectors (vectors.cl), many
// rows by one work-item.
// The defines of lane_math.cl beyond those of vector_macros.
std::string lane_macros(DType dtype, std::int64_t vec);
// Elements of a vector there (VEC).
std::int64_t row_lanes(DType dtype, const ExtendedDeviceProfile& profile);
// The defines of vectors.cl beyond T and ACC.
std::string row_macros(DType dtype, const ExtendedDeviceProfile& profile);
bool in_vectors(const Queue& queue, const RowPlan& plan, Team team);
KernelPtr vector_kernel(const Queue& queue, const char* path, const char* kernel, DType dtype,
                        std::int64_t bits = 0, const std::string& more = {});
// The same with PAST_CACHES for calls whose operands do not stay in the caches anyway.
KernelPtr vector_kernel(const OpCall& call, const char* path, const char* kernel,
                        std::int64_t bits = 0, const std::string& more = {});
// Rows of a work-item: enough to be worth its start, few enough to keep all cores busy.
std::int64_t rows_per_item(const Queue& queue, const RowPlan& plan);
// Adds the number of rows per item to the arguments.
void enqueue_blocks(const Queue& queue, const KernelPtr& kernel, OpArgs args, const RowPlan& plan);

// Floating, but not bfloat16; the message names the op.
void check_floating(const OpSpec& spec, std::size_t input = 0);
void check_same(const OpSpec& spec, std::size_t a, std::size_t b);  // shapes and dtypes

}  // namespace netcl
