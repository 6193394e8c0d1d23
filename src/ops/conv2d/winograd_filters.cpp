#include "ops/conv2d/winograd_filters.h"

#include "ops/conv2d/launch.h"
#include "ops/weight_forms.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/winograd_filters.cl";

Tensor transformed(const Tensor& w, std::int64_t patch, std::int64_t vec, std::int64_t block) {
  const auto K = w.size(0), C = w.size(1), blocks = static_cast<std::int64_t>(ceil_div(K, block));
  const auto u =
      Tensor::empty(w.queue(), {patch * patch, blocks * block, C}, compute_dtype(w.dtype()));
  const auto kernel = op_kernel(
      w.queue(), {kPath, "winograd_vector_filters", {bit(w.dtype()), patch, vec, block}}, [&] {
        return t_and_acc(w.dtype()) + vector_macros(w.dtype(), vec) + define("PATCH", patch) +
               define("BLOCK", block);
      });
  OpArgs().tensor(w).tensor(u).value(K).value(C).enqueue(w.queue(), kernel, blocks, 1);
  return u;
}

}  // namespace

Tensor vector_filters(const OpCall& call, std::int64_t patch, std::int64_t vec, bool in_blocks) {
  const auto block = in_blocks ? vec : 1;
  return form_of({"winograd_vector_filters",
                  {patch, vec, block},
                  [=](const Tensors& sources) -> Tensors {
                    return {transformed(sources[0], patch, vec, block)};
                  }},
                 {call.inputs[1]});
}

}  // namespace netcl::conv
