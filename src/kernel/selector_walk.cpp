// One decision: the walk over the rules of an op, first the users', then the built-in ones.
#include <set>

#include "base/check.h"
#include "base/log.h"
#include "kernel/selector_state.h"

namespace netcl {
namespace {

using detail::BuiltinRule;
using detail::Knowledge;
using detail::RuleInput;
using detail::Strikes;
using detail::UserRule;

std::vector<const BuiltinRule*> builtin_rules_of(std::string_view op) {
  std::vector<const BuiltinRule*> rules;
  for (const auto& rule : detail::builtin_rules())
    if (rule.op == op) rules.push_back(&rule);
  return rules;
}

std::string known_ops(const Knowledge& known) {
  std::set<std::string> ops;
  for (const auto& rule : detail::builtin_rules()) ops.emplace(rule.op);
  for (const auto& entry : known.user_rules) ops.insert(entry.first);
  return fmt::format("{}", join(ops, ", "));
}

// One walk over the rules of an op.
class Walk {
 public:
  Walk(const Knowledge& known, const RuleInput& input)
      : known_(known), input_(input), strikes_(strikes_on(known, input.profile)) {}

  KernelDecision run() {
    const auto user = known_.user_rules.find(input_.problem.op);
    const auto builtin = builtin_rules_of(input_.problem.op);
    const bool has_user_rules = user != known_.user_rules.end();
    check<ArgumentError>(has_user_rules || !builtin.empty(),
                         "[select] the op must have rules; there are rules for {}: {}",
                         known_ops(known_), input_.problem.op);
    if (has_user_rules)
      for (const auto& rule : user->second)
        if (takes(*rule)) return decision_;
    for (const auto* rule : builtin)
      if (takes(*rule)) return decision_;
    fail<ArgumentError>("[select] a rule must hold for {} on {}: {}", input_.problem.op,
                        input_.profile.name, declined_text());
  }

 private:
  bool takes(const UserRule& rule) {
    if (is_struck_out(rule.kernel)) return false;
    if (!rule.condition(input_.problem, input_.profile))
      return declines(rule.kernel, "the condition of the user's rule is false");
    decision_.by_user = true;
    return take(rule.kernel, rule.reason, detail::make_named_config(rule.kernel, input_));
  }

  bool takes(const BuiltinRule& rule) {
    const std::string kernel(name_of(rule.variant));
    if (is_struck_out(kernel)) return false;
    if (auto why = rule.why_not(input_); !why.empty()) return declines(kernel, std::move(why));
    return take(kernel, fmt::format("{}: {}", rule.when, rule.because),
                detail::make_config(rule, input_));
  }

  bool take(const std::string& kernel, std::string reason, KernelConfig config) {
    decision_.kernel = kernel;
    decision_.reason = std::move(reason);
    decision_.config = std::move(config);
    decision_.rule = decision_.declined.size();
    return true;
  }

  bool declines(const std::string& kernel, std::string why) {
    decision_.declined.push_back({kernel, std::move(why)});
    return false;
  }

  bool is_struck_out(const std::string& kernel) {
    const auto found = strikes_.find(kernel);
    if (found == strikes_.end()) return false;
    declines(kernel, "struck out on this device: " + found->second);
    return true;
  }

  std::string declined_text() const {
    std::string text;
    for (const auto& [kernel, why] : decision_.declined)
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", kernel, why);
    return text;
  }

  const Knowledge& known_;
  const RuleInput& input_;
  const Strikes& strikes_;
  KernelDecision decision_;
};

std::string describe(const KernelProblem& problem) {
  std::string text = problem.op;
  for (const auto& shape : problem.shapes) text += " " + shape.to_string();
  return fmt::format("{} {}", text, name_of(problem.dtype));
}

}  // namespace

const Strikes& detail::strikes_on(const Knowledge& known, const ExtendedDeviceProfile& profile) {
  static const Strikes none;
  const auto found = known.struck_out.find(detail::profile_number(profile));
  return found == known.struck_out.end() ? none : found->second;
}

std::string KernelDecision::to_string() const {
  std::string text = fmt::format("{} ({})", kernel, reason);
  for (const auto& one : declined) text += fmt::format("\n  not {}: {}", one.kernel, one.why);
  return text;
}

KernelDecision KernelSelector::State::evaluate(const KernelProblem& problem,
                                               const ExtendedDeviceProfile& profile,
                                               std::uint64_t settings) const {
  const auto known = knowledge();
  const RuleInput input{problem, profile, detail::SelectorSettings::unpacked(settings)};
  return Walk(*known, input).run();
}

void KernelSelector::State::report(const KernelProblem& problem,
                                   const ExtendedDeviceProfile& profile,
                                   const KernelDecision& decision) {
  log::debug(2, "{} on {}: {}", describe(problem), profile.name, decision.to_string());
}

}  // namespace netcl
