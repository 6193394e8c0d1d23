#include "jit/kernel_memo.h"

#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/log.h"
#include "cl/state.h"
#include "jit/stats.h"

namespace netcl::fusion {
namespace {

constexpr std::size_t kMaxPlans = 4096;  // beyond that all are forgotten; the program cache is not

struct Plan {
  std::vector<KernelPtr> kernels;
  std::vector<std::shared_ptr<const ElementFunction>> functions;
};

// Belongs to a context, as the kernels do.
struct Memo {
  std::mutex mutex;
  std::unordered_map<std::string, Plan> plans;
};

}  // namespace

std::vector<KernelPtr> memo_kernels(const Queue& queue, const GroupProgram& group,
                                    const std::string& key, const std::vector<const char*>& names,
                                    const std::function<std::string()>& source) {
  const auto memo = queue.context().state().attachments.get<Memo>([] { return new Memo(); });
  const auto device = queue.device().int_ptr();
  std::string full(reinterpret_cast<const char*>(&device), sizeof device);
  full += key;
  {
    const std::lock_guard lock(memo->mutex);
    const auto found = memo->plans.find(full);
    if (found != memo->plans.end()) return found->second.kernels;
  }
  const auto text = source();
  log::debug(3, "[jit] fused kernel for {}:\n{}", queue.device().name(), text);
  const auto program = compile(queue.context(), queue.device(), text, {"-cl-std=CL1.2"});
  std::vector<KernelPtr> kernels;
  for (const auto* name : names) {
    kernels.push_back(program->find(name));
    check(kernels.back() != nullptr, "[jit] the source must define the kernel {}", name);
  }
  counters().compiled.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(memo->mutex);
  if (memo->plans.size() >= kMaxPlans) memo->plans.clear();
  Plan plan{std::move(kernels), group.functions()};
  return memo->plans.emplace(std::move(full), std::move(plan)).first->second.kernels;
}

}  // namespace netcl::fusion
