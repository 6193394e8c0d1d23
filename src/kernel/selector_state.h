// The state that copies of a KernelSelector share. Rules and struck-out kernels form one immutable
// value that is replaced as a whole, so a decision in progress sees one state of affairs, and
// conditions run without a lock.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel/selector_memo.h"
#include "kernel/selector_rules.h"

namespace netcl {
namespace detail {

struct UserRule {
  KernelSelector::ProblemCondition condition;
  std::string kernel, reason;
};

struct Knowledge {
  // Shared, not copied: a condition may belong to an interpreter, whose objects must not be copied
  // or destroyed by whichever thread drops an old state of affairs.
  std::map<std::string, std::vector<std::shared_ptr<const UserRule>>> user_rules;
  std::map<std::uint64_t, std::map<std::string, std::string>> struck_out;  // by profile_number
};

using Strikes = std::map<std::string, std::string>;

const Strikes& strikes_on(const Knowledge& known, const ExtendedDeviceProfile& profile);

// Raised with every change of any selector's rules or struck-out kernels, and when one is told to
// forget: for memos that look at no selector while nothing changed.
inline std::atomic<std::uint64_t> g_rules_generation{0};

}  // namespace detail

struct KernelSelector::State {
  std::shared_ptr<const detail::Knowledge> knowledge() const {
    const std::lock_guard lock(mutex_);
    return knowledge_;
  }

  // Replaces what is known and makes every remembered decision unreachable.
  template <class Change>
  void change(Change&& apply) {
    {
      const std::lock_guard lock(mutex_);
      auto next = std::make_shared<detail::Knowledge>(*knowledge_);
      if (!apply(*next)) return;
      knowledge_ = std::move(next);
      generation_.fetch_add(1, std::memory_order_release);
    }
    forget();
  }

  void forget() {
    memo.clear();
    detail::g_rules_generation.fetch_add(1, std::memory_order_release);
  }

  void read_environment() {
    settings_.store(detail::SelectorSettings::from_environment().packed());
  }
  std::uint64_t settings() const { return settings_.load(std::memory_order_relaxed); }

  // Opens a key with all that decides besides the problem.
  detail::MemoKey key(const ExtendedDeviceProfile& profile) const {
    detail::MemoKey key;
    key.add(detail::profile_number(profile));
    key.add(generation_.load(std::memory_order_acquire));
    key.add(settings());
    return key;
  }

  KernelDecision evaluate(const KernelProblem& problem, const ExtendedDeviceProfile& profile,
                          std::uint64_t settings) const;

  // Made from `problem()` unless it is remembered under `key`.
  template <class MakeProblem>
  detail::Remembered decide(const detail::MemoKey& key, const ExtendedDeviceProfile& profile,
                            MakeProblem&& make_problem) {
    if (auto known = memo.find(key)) return known;
    const KernelProblem& problem = make_problem();
    // The settings of the key: another thread may have read the environment again meanwhile.
    const auto settings = key.words()[kSettingsWord];
    auto made = std::make_shared<const KernelDecision>(evaluate(problem, profile, settings));
    auto [decision, is_first] = memo.insert(key, std::move(made));
    if (is_first) report(problem, profile, *decision);
    return decision;
  }

  detail::DecisionMemo memo;

 private:
  static constexpr std::size_t kSettingsWord = 2;

  static void report(const KernelProblem& problem, const ExtendedDeviceProfile& profile,
                     const KernelDecision& decision);

  mutable std::mutex mutex_;
  std::shared_ptr<const detail::Knowledge> knowledge_ = std::make_shared<const detail::Knowledge>();
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> settings_{detail::SelectorSettings::from_environment().packed()};
};

}  // namespace netcl
