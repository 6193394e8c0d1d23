#include "base/parallel.h"
#include "jit/block_evaluator.h"

namespace netcl::fusion {
namespace {

constexpr std::int64_t kGrain = 1 << 15;  // element functions below which threads do not pay

template <class V>
void evaluate_all(const GroupProgram& program, const std::vector<Tensor>& results) {
  const BlockEvaluator<V> evaluator(program, results);
  const auto work = static_cast<std::int64_t>(program.steps.size()) + 1;
  parallel_for(program.numel, std::max(kGrain / work, kBlock),
               [&](std::int64_t begin, std::int64_t end) {
                 typename BlockEvaluator<V>::Scratch scratch(evaluator);
                 for (auto at = begin; at < end; at += kBlock)
                   evaluator.evaluate(at, std::min(kBlock, end - at), scratch);
               });
}

}  // namespace

std::vector<Tensor> run_on_host(const Queue& queue, const GroupProgram& program) {
  auto results = allocate_results(queue, program);
  if (program.compute == DType::float64)
    evaluate_all<double>(program, results);
  else
    evaluate_all<float>(program, results);
  return results;
}

}  // namespace netcl::fusion
