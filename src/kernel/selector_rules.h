// The built-in rules: the only place where netcl knows which kernel suits which device.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "netcl/kernel_selector.h"

namespace netcl::detail {

// The part of the environment that decides.
struct SelectorSettings {
  std::string_view strategy = "auto";  // one of three literals
  bool winograd = true, tiled_local = false;

  static SelectorSettings from_environment();
  // All of it in one number, for the memo's key and for sharing between threads.
  std::uint64_t packed() const;
  static SelectorSettings unpacked(std::uint64_t bits);
};

struct RuleInput {
  const KernelProblem& problem;
  const ExtendedDeviceProfile& profile;
  SelectorSettings settings;
};

struct BuiltinRule {
  std::string_view op;
  KernelVariant variant;
  std::string_view when, because;
  std::string (*why_not)(const RuleInput& input);  // empty: the rule holds
  void (*configure)(const RuleInput& input, KernelConfig& config);
};

// In the order in which they are tried; the last rule of each op always holds.
std::span<const BuiltinRule> builtin_rules();

// A configuration of `variant` for a rule's input: the device's starting points, then `configure`.
KernelConfig make_config(const BuiltinRule& rule, const RuleInput& input);
// For a kernel that no rule chose: as the first rule with this kernel that holds would have it,
// else as the last one, which is the most general. The starting points alone for a kernel of the
// user's.
KernelConfig make_named_config(std::string_view kernel, const RuleInput& input);

}  // namespace netcl::detail
