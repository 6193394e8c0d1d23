// Reads the shapes and attributes of a KernelProblem.
#include "kernel/selector_problem.h"

#include "base/check.h"

namespace netcl {

std::int64_t KernelProblem::integer(std::string_view name, std::int64_t otherwise) const {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  if (const auto* value = std::get_if<std::int64_t>(&found->second)) return *value;
  if (const auto* value = std::get_if<bool>(&found->second)) return *value ? 1 : 0;
  fail<ArgumentError>("[select] attribute {} of {} must be an integer", name, op);
}

namespace detail {
namespace {

std::int64_t at_least(std::int64_t lowest, std::int64_t value, std::string_view name) {
  check<ArgumentError>(value >= lowest, "[select] {} of conv2d must be at least {}: {}", name,
                       lowest, value);
  return value;
}

// "stride_h" where the axes differ, else "stride".
std::int64_t axis_attribute(const KernelProblem& problem, std::string_view name, char axis,
                            std::int64_t otherwise, std::int64_t lowest) {
  const auto both = problem.integer(name, otherwise);
  return at_least(lowest, problem.integer(fmt::format("{}_{}", name, axis), both), name);
}

void read_attributes(const KernelProblem& problem, Conv2dSizes& sizes) {
  sizes.stride_h = axis_attribute(problem, "stride", 'h', 1, 1);
  sizes.stride_w = axis_attribute(problem, "stride", 'w', 1, 1);
  sizes.padding_h = axis_attribute(problem, "padding", 'h', 0, 0);
  sizes.padding_w = axis_attribute(problem, "padding", 'w', 0, 0);
  sizes.dilation_h = axis_attribute(problem, "dilation", 'h', 1, 1);
  sizes.dilation_w = axis_attribute(problem, "dilation", 'w', 1, 1);
  sizes.groups = at_least(1, problem.integer("groups", 1), "groups");
}

}  // namespace

std::optional<MatmulSizes> matmul_sizes(const KernelProblem& problem) {
  if (problem.shapes.size() < 2) return {};
  const auto &x = problem.shapes[0], &w = problem.shapes[1];
  if (x.rank() < 1 || w.rank() < 1) return {};
  const auto K = x[x.rank() - 1];
  const auto N = w.rank() == 1 ? 1 : w[w.rank() - 1];
  // Leading axes of x are more rows of the same product, unless w has one matrix for each.
  const bool batched = w.rank() > 2 || K == 0;
  const auto M = x.rank() == 1 ? 1 : batched ? x[x.rank() - 2] : x.numel() / K;
  return MatmulSizes{M, N, K};
}

std::optional<Conv2dSizes> conv2d_sizes(const KernelProblem& problem) {
  Conv2dSizes sizes{};
  read_attributes(problem, sizes);  // checked also where the shapes are not given
  if (problem.shapes.size() < 2) return {};
  const auto &x = problem.shapes[0], &w = problem.shapes[1];
  if (x.rank() != 4 || w.rank() != 4) return {};
  sizes.N = x[0], sizes.C = x[1], sizes.H = x[2], sizes.W = x[3];
  sizes.K = w[0], sizes.R = w[2], sizes.S = w[3];
  return sizes;
}

std::int64_t elements(const KernelProblem& problem) {
  std::int64_t most = 0;
  for (const auto& shape : problem.shapes) most = std::max(most, shape.numel());
  return most;
}

}  // namespace detail
}  // namespace netcl
