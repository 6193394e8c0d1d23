// The tensor kernels as problems for `netcl tune`: transposed copies, casts and random numbers,
// each in sizes that stay in a cache and sizes that do not.
#include <memory>

#include "base/format.h"
#include "cl/cl.h"
#include "netcl/tensor.h"
#include "tensor/element_kernel.h"
#include "tensor/kernels.h"
#include "tensor/strided.h"

namespace netcl {
namespace {

constexpr std::int64_t kSides[] = {128, 1024, 4096};  // square matrices of so many rows

// Turns a description into a problem with scratch tensors that live as long as it does.
template <class Enqueue>
TunableProblem make_problem(const Queue& queue, const ElementKernel& kernel, std::uint64_t n,
                            std::string label, const Tensor& to, Enqueue enqueue) {
  auto problem = element_problem(queue, kernel, n);
  problem.label = std::move(label);
  problem.output_dtype = to.dtype();
  problem.prepare = [queue, kernel, n, enqueue](const Parameters& parameters) {
    return [queue, n, enqueue, launch = compile_elements(queue, kernel, parameters)] {
      enqueue(queue, launch, n);
    };
  };
  problem.output = [to] {
    const auto array = to.to_host();
    const auto* bytes = static_cast<const std::byte*>(array.data());
    return std::vector<std::byte>(bytes, bytes + array.nbytes());
  };
  return problem;
}

TunableProblem transposed_problem(const Queue& queue, std::int64_t side, DType from_type,
                                  DType to_type) {
  const auto from = Tensor::random(queue, {side, side}, 1, Distribution::normal, from_type);
  const auto to = Tensor::from_shape(queue, {side, side}, to_type);
  const auto axes = plan_loops(to.shape(), to.strides(), from.transpose().strides());
  const auto n = static_cast<std::uint64_t>(side * side);
  const bool casts = from_type != to_type;
  const auto kernel = casts ? cast_kernel(from_type, to_type, axes.size(), n)
                            : copy_kernel(from_type, axes.size(), n);
  auto label = fmt::format("{}{}, {} x {}, transposed", name_of(from_type),
                           casts ? fmt::format(" to {}", name_of(to_type)) : "", side, side);
  return make_problem(queue, kernel, n, std::move(label), to,
                      [from, to, axes = KernelAxes(axes)](
                          const Queue& on, const ElementLaunch& launch, std::uint64_t) {
                        enqueue_copy(on, launch, axes, to.buffer(), 0, from.buffer(), 0);
                      });
}

}  // namespace

TunableProblem scratch_copy_problem(const Queue& queue, DType from_type, DType to_type,
                                    std::size_t rank, std::uint64_t n) {
  // Two elements on all axes but the last, reversed: as many axes as in the real problem.
  std::vector<std::int64_t> sizes(std::max<std::size_t>(rank, 1), 2);
  sizes.back() = static_cast<std::int64_t>(n >> (sizes.size() - 1));
  std::vector<std::int64_t> reversed;
  for (std::size_t i = sizes.size(); i-- > 0;) reversed.push_back(static_cast<std::int64_t>(i));
  const auto from = Tensor::from_shape(queue, Shape(sizes), from_type).permute(reversed);
  const auto to = Tensor::from_shape(queue, from.shape(), to_type);
  const auto axes = KernelAxes(plan_loops(to.shape(), to.strides(), from.strides()));
  const auto kernel = from_type == to_type ? copy_kernel(from_type, rank, n)
                                           : cast_kernel(from_type, to_type, rank, n);
  return make_problem(
      queue, kernel, n, "at first use", to,
      [from, to, axes](const Queue& on, const ElementLaunch& launch, std::uint64_t) {
        enqueue_copy(on, launch, axes, to.buffer(), 0, from.buffer(), 0);
      });
}

TunableProblem scratch_random_problem(const Queue& queue, DType dtype, Distribution distribution,
                                      std::int64_t count) {
  const auto to = Tensor::from_shape(queue, {count}, dtype);
  return make_problem(queue, random_kernel(dtype, distribution), random_blocks(dtype, count),
                      "at first use", to,
                      [to](const Queue& on, const ElementLaunch& launch, std::uint64_t) {
                        enqueue_random(on, launch, to.buffer(), to.dtype(), to.numel(), 7);
                      });
}

void register_tensor_tunables() {
  register_tunable_op("copy", [](const Queue& queue) {
    std::vector<TunableProblem> problems;
    for (const auto side : kSides)
      problems.push_back(transposed_problem(queue, side, DType::float32, DType::float32));
    return problems;
  });
  register_tunable_op("cast", [](const Queue& queue) {
    std::vector<TunableProblem> problems;
    for (const auto side : kSides) {
      problems.push_back(transposed_problem(queue, side, DType::float32, DType::float16));
      problems.push_back(transposed_problem(queue, side, DType::float16, DType::float32));
    }
    return problems;
  });
  register_tunable_op("random", [](const Queue& queue) {
    std::vector<TunableProblem> problems;
    for (const auto side : kSides)
      for (const auto distribution : {Distribution::uniform, Distribution::normal}) {
        problems.push_back(
            scratch_random_problem(queue, DType::float32, distribution, side * side));
        problems.back().label =
            fmt::format("{}, float32, {} elements",
                        distribution == Distribution::normal ? "normal" : "uniform", side * side);
      }
    return problems;
  });
}

}  // namespace netcl
