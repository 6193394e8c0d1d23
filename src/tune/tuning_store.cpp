// The tuning results of this process and their file. Lookups take a shared lock and never wait for
// the disk; loading and saving have a lock of their own, and between processes a lock file.
#include "netcl/tuning_store.h"

#include <atomic>
#include <cstdio>
#include <functional>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <system_error>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "tune/tuning_file.h"

namespace netcl {
namespace {

constexpr std::chrono::seconds kLockWait{30};
constexpr std::chrono::seconds kTemporaryAge{60};

struct KeyHash {
  std::size_t operator()(const TuningKey& key) const noexcept {
    std::size_t hash = 0;
    const auto mix = [&](std::size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u; };
    for (const auto* text : {&key.device, &key.driver, &key.kernel, &key.source_hash, &key.dtypes})
      mix(std::hash<std::string>()(*text));
    for (const auto size : key.global_size) mix(size + (hash >> 32));
    return hash;
  }
};

struct Entry {
  std::shared_ptr<const TuningRecord> record;
  bool unsaved = false;   // not in our file as far as we know
  bool recorded = false;  // measured by this process, so its source is the current one
};
using Entries = std::unordered_map<TuningKey, Entry, KeyHash>;

// All sources of one kernel; views into the key.
using Family = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
Family family_of(const TuningKey& key) { return {key.device, key.driver, key.kernel, key.dtypes}; }

// Puts `newer` into the table and takes out what they retire there.
void overlay(TuningTable& table, const Entries& newer) {
  std::map<Family, std::set<std::string_view>> current;
  for (const auto& [key, entry] : newer)
    if (entry.recorded) current[family_of(key)].insert(key.source_hash);
  std::erase_if(table, [&](const auto& item) {
    const auto found = current.find(family_of(item.first));
    return found != current.end() && !found->second.contains(item.first.source_hash);
  });
  for (const auto& [key, entry] : newer) table[key] = entry.record;
}

TuningTable read_table(const std::string& path) {
  const auto bytes = read_file_if_exists(path, kMaxTuningFileBytes);
  return bytes ? parse_tuning_file(*bytes, path) : TuningTable();
}

void write_table(const std::string& path, const TuningTable& table, unsigned mode) {
  const auto text = tuning_text(table);
  check<FileError>(text.size() <= kMaxTuningFileBytes,
                   "[tuning store] a tuning file has at most {} bytes: {} would have {}",
                   kMaxTuningFileBytes, path, text.size());
  write_file_atomic(path, std::as_bytes(std::span(text)), mode);
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Beside the file, because the file itself is replaced at every save.
FileLock lock_file_of(const std::string& path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return FileLock(directory_of(path) + "/." + name + ".lock", kLockWait);
}

void move_aside(const std::string& path, const char* damage) {
  const auto target = path + ".bad";
  if (std::rename(path.c_str(), target.c_str()) != 0) {
    const int code = errno;
    fail<FileError>("[tuning store] a malformed file must be movable to {}: {}", target,
                    std::generic_category().message(code));
  }
  log::warn_once(fmt::format("a malformed tuning store was moved to {}: {}", target, damage));
}

// The caller holds the lock file, so nobody replaces the file between the look and the move.
TuningTable read_or_move_aside(const std::string& path) {
  try {
    return read_table(path);
  } catch (const FormatError& error) {
    move_aside(path, error.what());
    return {};
  }
}

}  // namespace

struct TuningStore::State {
  std::string path;
  bool is_private = false;  // the file is in our cache directory, which we make and tidy

  std::atomic<bool> loaded{false};
  std::mutex disk_mutex;       // taken before `mutex`; one load, save or clear at a time
  bool replaces_file = false;  // cleared since the last save; guarded by disk_mutex

  std::shared_mutex mutex;  // guards the entries
  Entries entries;

  void ensure_loaded();
  TuningTable read_own_file();
  void take_over(const TuningTable& table);
  Entries unsaved_entries();
  void save_own_file();
  void mark_saved(const Entries& saved, const TuningTable& table);
};

TuningTable TuningStore::State::read_own_file() {
  if (path.empty()) return {};
  try {
    try {
      return read_table(path);
    } catch (const FormatError&) {
      const auto lock = lock_file_of(path);
      return read_or_move_aside(path);  // again: it may have been replaced by a good one
    }
  } catch (const FileError& error) {
    log::warn_once(fmt::format("the tuning store {} cannot be used: {}", path, error.what()));
  } catch (const TimeoutError& error) {
    log::warn_once(fmt::format("the tuning store {} cannot be used: {}", path, error.what()));
  }
  return {};
}

void TuningStore::State::ensure_loaded() {
  if (loaded.load(std::memory_order_acquire)) return;
  const std::lock_guard disk(disk_mutex);
  if (loaded.load(std::memory_order_relaxed)) return;
  const auto table = read_own_file();
  {
    const std::unique_lock lock(mutex);
    take_over(table);
  }
  loaded.store(true, std::memory_order_release);
}

// What other processes saved; our own unsaved results are newer.
void TuningStore::State::take_over(const TuningTable& table) {
  for (const auto& [key, record] : table) {
    auto& entry = entries[key];
    if (!entry.unsaved) entry.record = record;
  }
}

Entries TuningStore::State::unsaved_entries() {
  const std::shared_lock lock(mutex);
  Entries result;
  for (const auto& item : entries)
    if (item.second.unsaved) result.insert(item);
  return result;
}

void TuningStore::State::mark_saved(const Entries& saved, const TuningTable& table) {
  const std::unique_lock lock(mutex);
  for (const auto& [key, entry] : saved) {
    const auto found = entries.find(key);
    // Another record may have come in while we were writing.
    if (found != entries.end() && found->second.record == entry.record)
      found->second.unsaved = false;
  }
  take_over(table);
}

void TuningStore::State::save_own_file() {
  const std::lock_guard disk(disk_mutex);
  const auto unsaved = unsaved_entries();
  if (unsaved.empty() && !replaces_file) return;
  if (is_private) {
    const auto reason = ensure_private_directory(directory_of(path));
    check<FileError>(reason.empty(), "[tuning store] the cache directory must be usable: {}",
                     reason);
    remove_stale_temporaries(directory_of(path), kTemporaryAge);
  }
  const auto lock = lock_file_of(path);
  auto table = replaces_file ? TuningTable() : read_or_move_aside(path);
  overlay(table, unsaved);
  write_table(path, table, is_private ? 0600 : 0644);
  replaces_file = false;
  mark_saved(unsaved, table);
}

TuningStore::TuningStore(std::string path) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
}

TuningStore::~TuningStore() = default;

std::shared_ptr<const TuningRecord> TuningStore::find(const TuningKey& key) const {
  state_->ensure_loaded();
  {
    const std::shared_lock lock(state_->mutex);
    const auto found = state_->entries.find(key);
    if (found != state_->entries.end()) return found->second.record;
  }
  if (is_plain_ascii(key)) return nullptr;
  const auto valid = with_valid_utf8(key);  // as record() stored it
  const std::shared_lock lock(state_->mutex);
  const auto found = state_->entries.find(valid);
  return found == state_->entries.end() ? nullptr : found->second.record;
}

std::optional<TuningRecord> TuningStore::lookup(const TuningKey& key) const {
  const auto record = find(key);
  return record ? std::optional(*record) : std::nullopt;
}

void TuningStore::record(const TuningKey& key, TuningRecord value) {
  const auto valid = with_valid_utf8(key);
  for (auto& candidate : value.candidates) candidate.note = with_valid_utf8(candidate.note);
  check_tuning_entry(valid, value);
  state_->ensure_loaded();
  auto record = std::make_shared<const TuningRecord>(std::move(value));
  const std::unique_lock lock(state_->mutex);
  std::erase_if(state_->entries, [&, family = family_of(valid)](const auto& item) {
    return item.first.source_hash != valid.source_hash && family_of(item.first) == family;
  });
  state_->entries[valid] = {std::move(record), true, true};
}

void TuningStore::save() {
  check<FileError>(!state_->path.empty(),
                   "[tuning store] a file to save to is needed: set NETCL_TUNING_FILE, "
                   "NETCL_CACHE_DIR or HOME");
  state_->ensure_loaded();
  state_->save_own_file();
}

void TuningStore::save(const std::string& path) {
  if (path == state_->path) return save();
  state_->ensure_loaded();
  Entries all;
  {
    const std::shared_lock lock(state_->mutex);
    all = state_->entries;
  }
  const auto lock = lock_file_of(path);
  auto table = read_table(path);
  overlay(table, all);
  write_table(path, table, 0644);
}

void TuningStore::save_quietly() {
  try {
    save();
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    log::warn_once(fmt::format("tuning results are not kept: {}", error.what()));
  }
}

void TuningStore::load(const std::string& path) {
  const auto table = parse_tuning_file(read_file(path, kMaxTuningFileBytes), path);
  state_->ensure_loaded();
  const std::unique_lock lock(state_->mutex);
  for (const auto& [key, record] : table) state_->entries[key] = {record, true, false};
}

void TuningStore::clear() {
  const std::lock_guard disk(state_->disk_mutex);
  const std::unique_lock lock(state_->mutex);
  state_->entries.clear();
  state_->replaces_file = true;
  state_->loaded.store(true, std::memory_order_release);
}

std::vector<std::pair<TuningKey, TuningRecord>> TuningStore::entries() const {
  state_->ensure_loaded();
  TuningTable sorted;
  {
    const std::shared_lock lock(state_->mutex);
    for (const auto& [key, entry] : state_->entries) sorted.emplace(key, entry.record);
  }
  std::vector<std::pair<TuningKey, TuningRecord>> result;
  for (const auto& [key, record] : sorted) result.emplace_back(key, *record);
  return result;
}

std::size_t TuningStore::size() const {
  state_->ensure_loaded();
  const std::shared_lock lock(state_->mutex);
  return state_->entries.size();
}

const std::string& TuningStore::path() const { return state_->path; }

std::string TuningKey::to_string() const {
  return fmt::format("{} ({}) {} on {} ({}), source {}", kernel, join(global_size, ", "), dtypes,
                     device, driver, source_hash.substr(0, 12));
}

TuningStore& default_tuning_store() {
  // Leaked: kernels may be launched until the very end of the process. The environment is read
  // once, because lookups happen at launches, where other threads may be changing it.
  static auto* store = [] {
    auto path = env::text("NETCL_TUNING_FILE");
    const auto directory = cache_directory();
    const bool is_private = path.empty() && !directory.empty();
    if (is_private) path = directory + "/tuning.json";
    auto* made = new TuningStore(path);
    made->state_->is_private = is_private;
    return made;
  }();
  return *store;
}

}  // namespace netcl
