#include "ops/registry.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/near_names.h"
#include "ops/dispatch.h"

namespace netcl {
namespace {

struct Table {
  std::vector<OpDef> ops;
  std::vector<const OpDef*> sorted;
  std::unordered_map<std::string_view, const OpDef*> by_name;

  Table() : ops(detail::make_ops()) {
    for (const auto& op : ops) {
      sorted.push_back(&op);
      check(by_name.emplace(op.name, &op).second, "[ops] two ops are called {}", op.name);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  }
};

const Table& table() {
  static const auto* const instance = new Table();
  return *instance;
}

struct UserOps {
  std::shared_mutex mutex;
  std::deque<OpDef> all;
  std::map<std::string, const OpDef*, std::less<>> by_name;
};

UserOps& user_ops() {
  static auto* instance = new UserOps();
  return *instance;
}

struct UserVariants {
  std::mutex mutex;
  std::atomic<std::uint64_t> generation{0};
  std::map<std::string, std::deque<OpVariant>, std::less<>> of;  // a deque keeps addresses
};

UserVariants& user_variants() {
  static auto* instance = new UserVariants();
  return *instance;
}

}  // namespace

const std::vector<const OpDef*>& all_ops() { return table().sorted; }

const OpDef* find_op_or_null(std::string_view name) {
  const auto found = table().by_name.find(name);
  if (found != table().by_name.end()) return found->second;
  auto& users = user_ops();
  const std::shared_lock lock(users.mutex);
  const auto theirs = users.by_name.find(name);
  return theirs == users.by_name.end() ? nullptr : theirs->second;
}

const OpDef& register_op(OpDef op, bool replace) {
  check<ArgumentError>(table().by_name.count(op.name) == 0,
                       "[{}] the name is that of an op of netcl", op.name);
  auto& users = user_ops();
  const std::unique_lock lock(users.mutex);
  check<ArgumentError>(replace || users.by_name.count(op.name) == 0,
                       "[{}] the name is that of an op that was registered before", op.name);
  const auto& stored = users.all.emplace_back(std::move(op));
  users.by_name[stored.name] = &stored;
  return stored;
}

void unregister_op(std::string_view name) {
  auto& users = user_ops();
  const std::unique_lock lock(users.mutex);
  if (const auto found = users.by_name.find(name); found != users.by_name.end())
    users.by_name.erase(found);
}

const OpDef& find_op(std::string_view name) {
  const auto* op = find_op_or_null(name);
  if (op != nullptr) return *op;
  std::vector<std::string> names;
  for (const auto* one : all_ops()) names.push_back(one->name);
  const auto near = near_names(name, names);
  fail<ArgumentError>("[ops] there is no op called '{}' (`netcl ops` lists them){}", name,
                      near.empty() ? "" : "; did you mean " + join(near, " or ") + "?");
}

std::vector<std::string> variant_names(const OpDef& op) {
  std::vector<std::string> names;
  for (const auto& variant : op.variants) names.emplace_back(variant.name);
  auto& users = user_variants();
  const std::lock_guard lock(users.mutex);
  if (const auto found = users.of.find(op.name); found != users.of.end())
    for (const auto& variant : found->second) names.emplace_back(variant.name);
  return names;
}

const OpVariant* find_user_variant(std::string_view op, std::string_view variant) {
  auto& users = user_variants();
  const std::lock_guard lock(users.mutex);
  const auto found = users.of.find(op);
  if (found == users.of.end()) return nullptr;
  // The newest of a name counts.
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it)
    if (variant == it->name) return &*it;
  return nullptr;
}

bool is_user_variant(std::string_view variant) {
  auto& users = user_variants();
  const std::lock_guard lock(users.mutex);
  for (const auto& [op, variants] : users.of)
    for (const auto& one : variants)
      if (variant == one.name) return true;
  return false;
}

std::uint64_t user_variants_generation() {
  return user_variants().generation.load(std::memory_order_acquire);
}

void register_variant(const std::string& op, OpVariant variant) {
  find_op(op);
  check<ArgumentError>(static_cast<bool>(variant.run), "[ops] variant {} of {} must have a run",
                       variant.name, op);
  auto& users = user_variants();
  const std::lock_guard lock(users.mutex);
  users.of[op].push_back(std::move(variant));
  users.generation.fetch_add(1, std::memory_order_release);
}

}  // namespace netcl
