// KernelSelector: registering and inspecting rules, selecting with a memo in front.
#include "base/check.h"
#include "base/log.h"
#include "kernel/selector_state.h"
#include "netcl/device.h"
#include "netcl/kernel_selector.h"

namespace netcl {

KernelSelector::KernelSelector() : state_(std::make_shared<State>()) {}

KernelSelector::KernelSelector(const ExtendedDeviceProfile& profile)
    : KernelSelector(std::make_shared<State>(),
                     std::make_shared<const ExtendedDeviceProfile>(profile)) {}

KernelSelector::KernelSelector(std::shared_ptr<State> state,
                               std::shared_ptr<const ExtendedDeviceProfile> profile)
    : state_(std::move(state)), profile_(std::move(profile)) {}

KernelSelector KernelSelector::for_device(const ExtendedDeviceProfile& profile) const {
  return {state_, std::make_shared<const ExtendedDeviceProfile>(profile)};
}

const ExtendedDeviceProfile& KernelSelector::profile() const {
  return profile_ ? *profile_ : get_active_device().profile();
}

void KernelSelector::register_rule(const std::string& op, Condition condition,
                                   const std::string& kernel, const std::string& reason) {
  check<ArgumentError>(condition != nullptr, "[register_rule] a rule of {} needs a condition", op);
  register_rule(
      op,
      ProblemCondition([condition = std::move(condition)](const KernelProblem& problem,
                                                          const ExtendedDeviceProfile& profile) {
        return condition(problem.shapes, profile);
      }),
      kernel, reason);
}

void KernelSelector::register_rule(const std::string& op, ProblemCondition condition,
                                   const std::string& kernel, const std::string& reason) {
  check<ArgumentError>(condition != nullptr, "[register_rule] a rule of {} needs a condition", op);
  check<ArgumentError>(!op.empty() && !kernel.empty(),
                       "[register_rule] op and kernel must be named: '{}', '{}'", op, kernel);
  auto rule = std::make_shared<const detail::UserRule>(
      detail::UserRule{std::move(condition), kernel, reason.empty() ? "a user's rule" : reason});
  state_->change([&](detail::Knowledge& known) {
    known.user_rules[op].push_back(std::move(rule));
    return true;
  });
}

std::string KernelSelector::select(const std::string& op, const std::vector<Shape>& shapes,
                                   const ExtendedDeviceProfile& profile) const {
  return select(KernelProblem{op, shapes, DType::float32, {}}, profile);
}

std::string KernelSelector::select(const KernelProblem& problem,
                                   const ExtendedDeviceProfile& profile) const {
  return decide(problem, profile)->kernel;
}

std::shared_ptr<const KernelDecision> KernelSelector::decide(
    const KernelProblem& problem, const ExtendedDeviceProfile& profile) const {
  auto key = state_->key(profile);
  key.add(problem);
  return state_->decide(key, profile, [&]() -> const KernelProblem& { return problem; });
}

KernelDecision KernelSelector::explain(const KernelProblem& problem,
                                       const ExtendedDeviceProfile& profile) const {
  return state_->evaluate(problem, profile, state_->settings());
}

std::map<std::string, std::vector<KernelRule>> KernelSelector::rules() const {
  std::map<std::string, std::vector<KernelRule>> result;
  const auto known = state_->knowledge();
  for (const auto& [op, rules] : known->user_rules)
    for (const auto& rule : rules) result[op].push_back({rule->kernel, "user", "", rule->reason});
  for (const auto& rule : detail::builtin_rules())
    result[std::string(rule.op)].push_back({std::string(name_of(rule.variant)), "builtin",
                                            std::string(rule.when), std::string(rule.because)});
  return result;
}

std::vector<KernelRule> KernelSelector::rules(const std::string& op) const {
  auto all = rules();
  return std::move(all[op]);
}

void KernelSelector::strike_out(const ExtendedDeviceProfile& profile, const std::string& kernel,
                                const std::string& reason) {
  log::warn_once(fmt::format("{} is not used on {} any more: {}", kernel, profile.name, reason));
  state_->change([&](detail::Knowledge& known) {
    return known.struck_out[detail::profile_number(profile)].emplace(kernel, reason).second;
  });
}

std::map<std::string, std::string> KernelSelector::struck_out(
    const ExtendedDeviceProfile& profile) const {
  return detail::strikes_on(*state_->knowledge(), profile);
}

void KernelSelector::clear_cache() {
  state_->read_environment();
  state_->forget();
}

std::size_t KernelSelector::cache_size() const { return state_->memo.size(); }

KernelSelector& get_kernel_selector() {
  // Leaked: users' conditions may belong to an interpreter that is gone when statics are destroyed.
  static auto* selector = new KernelSelector();
  selector->state_->read_environment();
  return *selector;
}

KernelSelector get_kernel_selector(const Device& device) {
  const auto& selector = get_kernel_selector();
  // Not owned: profiles of devices live as long as the process.
  return {selector.state_, {std::shared_ptr<const void>(), &device_profile(device)}};
}

}  // namespace netcl
