// The memo of KernelSelector and the numbering of profiles.
#include "kernel/selector_memo.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace netcl::detail {

void MemoKey::spill(std::uint64_t word) {
  if (spilled_.empty()) spilled_.assign(inline_.begin(), inline_.end());
  spilled_.push_back(word);
}

void MemoKey::add(std::string_view text) {
  add(std::uint64_t{text.size()});
  for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(8, text.size()))) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), std::min<std::size_t>(8, text.size()));
    add(word);
  }
}

void MemoKey::add(const KernelValue& value) {
  add(std::uint64_t{value.index()});
  if (const auto* integer = std::get_if<std::int64_t>(&value)) add(*integer);
  if (const auto* number = std::get_if<double>(&value)) add(std::bit_cast<std::uint64_t>(*number));
  if (const auto* text = std::get_if<std::string>(&value)) add(std::string_view(*text));
  if (const auto* flag = std::get_if<bool>(&value)) add(std::uint64_t{*flag});
}

void MemoKey::add(const KernelProblem& problem) {
  add(std::string_view(problem.op));
  add(static_cast<std::uint64_t>(problem.dtype));
  add(std::uint64_t{problem.shapes.size()});
  for (const auto& shape : problem.shapes) {
    add(shape.rank());
    for (const auto size : shape) add(size);
  }
  for (const auto& [name, value] : problem.attributes) {
    add(std::string_view(name));
    add(value);
  }
}

namespace {

struct Numbered {
  std::unique_ptr<const ExtendedDeviceProfile> profile;
  std::uint64_t number;
};

class ProfileNumbers {
 public:
  std::uint64_t of(const ExtendedDeviceProfile& profile) {
    // Only finds the bucket; equality of everything decides.
    const auto hash = std::hash<std::string_view>{}(profile.name) ^ profile.max_work_group_size;
    {
      const std::shared_lock lock(mutex_);
      if (const auto* known = find(hash, profile)) return known->number;
    }
    const std::unique_lock lock(mutex_);
    if (const auto* known = find(hash, profile)) return known->number;
    const std::uint64_t number = profiles_.size();
    profiles_.emplace(hash,
                      Numbered{std::make_unique<const ExtendedDeviceProfile>(profile), number});
    return number;
  }

 private:
  const Numbered* find(std::size_t hash, const ExtendedDeviceProfile& profile) const {
    const auto [begin, end] = profiles_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
      if (*at->second.profile == profile) return &at->second;
    return nullptr;
  }

  std::shared_mutex mutex_;
  std::unordered_multimap<std::size_t, Numbered> profiles_;
};

}  // namespace

std::uint64_t profile_number(const ExtendedDeviceProfile& profile) {
  // Leaked: selectors in static storage may outlive any static object of this file.
  static auto* numbers = new ProfileNumbers();
  return numbers->of(profile);
}

}  // namespace netcl::detail
