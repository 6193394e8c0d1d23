// Entries as files: looking up, writing, evicting. The directory is opened and checked at every
// operation: it may vanish or change hands at any time, and a compilation costs far more.
#include "kernel/binary_store.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"

namespace netcl {
namespace {

constexpr std::string_view kSuffix = ".bin";
constexpr std::size_t kKeyDigits = 64;
constexpr const char* kLockName = ".lock";
// No driver makes programs of this size; it bounds what a planted or damaged file makes us read.
constexpr std::size_t kMaxEntryBytes = std::size_t{256} << 20;
constexpr std::chrono::milliseconds kEvictionWait{1000};
constexpr std::chrono::seconds kTemporaryAge{60};

bool is_key(std::string_view text) {
  return text.size() == kKeyDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Keys become file names, so nothing else may pass.
std::string file_name(const std::string& key) {
  check<ArgumentError>(is_key(key), "[program cache] a key has {} lower-case hex digits: \"{}\"",
                       kKeyDigits, key);
  return key + std::string(kSuffix);
}

std::vector<FileInfo> entry_files(const Directory& directory) {
  auto files = directory.files();
  std::erase_if(files, [](const FileInfo& file) {
    return !file.name.ends_with(kSuffix) ||
           !is_key(std::string_view(file.name).substr(0, file.name.size() - kSuffix.size()));
  });
  return files;
}

std::string key_of(const FileInfo& file) { return file.name.substr(0, kKeyDigits); }

// Those from the future last: else they would outlive everything that is stored from now on.
void sort_newest_first(std::vector<FileInfo>& files) {
  std::ranges::sort(files, [](const FileInfo& a, const FileInfo& b) {
    const bool a_wrong = is_from_the_future(a), b_wrong = is_from_the_future(b);
    return a_wrong != b_wrong ? b_wrong : a.modified > b.modified;
  });
}

// Whether the entry is intact; nothing when another process removed it meanwhile.
std::optional<bool> is_intact(const Directory& directory, const FileInfo& file) {
  try {
    const auto bytes = directory.read(file.name, kMaxEntryBytes);
    if (!bytes) return std::nullopt;
    decode_entry(key_of(file), *bytes);
    return true;
  } catch (const FormatError&) {
    return false;
  }
}

}  // namespace

BinaryStore::BinaryStore(const std::string& directory, std::uint64_t max_bytes)
    : directory_(directory + "/programs"), max_bytes_(max_bytes) {}

void BinaryStore::warn_disk(const char* trouble) noexcept {
  if (warned_disk_.exchange(true)) return;
  try {
    log::warn_once(
        fmt::format("the program cache in {} does not work, so kernels are compiled "
                    "again in each process: {}",
                    directory_, trouble));
  } catch (...) {
  }
}

void BinaryStore::warn_damage(const char* damage) noexcept {
  if (warned_damage_.exchange(true)) return;
  try {
    log::warn_once(
        fmt::format("the program cache in {} had a damaged entry, which was removed and "
                    "is compiled again: {}",
                    directory_, damage));
  } catch (...) {
  }
}

std::optional<StoredProgram> BinaryStore::get(const std::string& key) {
  const auto name = file_name(key);
  std::optional<Directory> directory;
  try {
    directory = Directory::open_private(directory_);
    if (!directory) return std::nullopt;
    const auto bytes = directory->read(name, kMaxEntryBytes);
    if (!bytes) return std::nullopt;
    auto program = decode_entry(key, *bytes);
    directory->touch(name);
    return program;
  } catch (const FormatError& error) {
    directory->remove(name);
    warn_damage(error.what());
  } catch (const FileError& error) {
    warn_disk(error.what());
  }
  return std::nullopt;
}

void BinaryStore::put(const std::string& key, const StoredProgram& program) {
  const auto name = file_name(key);
  const auto file = encode_entry(key, program);
  if (file.size() > std::min<std::uint64_t>(max_bytes_, kMaxEntryBytes)) {
    log::debug(1, "program of {} bytes is too large for the program cache", file.size());
    return;
  }
  try {
    const auto directory = Directory::make_private(directory_);
    // The checksum finds what a power failure spoils, so the wait for the disk buys nothing.
    directory.write_atomic(name, file, 0600, Durable::no);
    evict(directory);
  } catch (const FileError& error) {
    warn_disk(error.what());
  }
}

void BinaryStore::remove(const std::string& key) {
  const auto name = file_name(key);
  try {
    if (const auto directory = Directory::open_private(directory_)) directory->remove(name);
  } catch (const FileError& error) {
    warn_disk(error.what());
  }
}

// Down to nine tenths, so that a full cache is not scanned and trimmed by one entry at every put.
void BinaryStore::evict(const Directory& directory) const {
  const auto total_of = [](const std::vector<FileInfo>& files) {
    std::uint64_t total = 0;
    for (const auto& file : files) total += file.bytes;
    return total;
  };
  if (total_of(entry_files(directory)) <= max_bytes_) return;
  try {
    const FileLock lock(directory.path() + "/" + kLockName, kEvictionWait);
    directory.remove_stale_temporaries(kTemporaryAge);
    auto files = entry_files(directory);  // again: the process before us may have made room
    auto total = total_of(files);
    if (total <= max_bytes_) return;
    sort_newest_first(files);
    while (files.size() > 1 && total > max_bytes_ - max_bytes_ / 10) {
      directory.remove(files.back().name);
      total -= files.back().bytes;
      files.pop_back();
    }
  } catch (const TimeoutError&) {
    // Another process is at it, or is stopped; the next put tries again.
  }
}

std::vector<CacheEntry> BinaryStore::list() const {
  std::vector<CacheEntry> entries;
  const auto directory = Directory::open_private(directory_);
  if (!directory) return entries;
  auto files = entry_files(*directory);
  sort_newest_first(files);
  for (const auto& file : files)
    if (const auto head = directory->read_head(file.name, kPeekBytes))
      entries.push_back({key_of(file), peek_description(*head), file.bytes, file.modified});
  return entries;
}

std::size_t BinaryStore::clear() {
  const auto directory = Directory::open_private(directory_);
  if (!directory) return 0;
  directory->remove_stale_temporaries(kTemporaryAge);
  std::size_t removed = 0;
  for (const auto& file : entry_files(*directory)) removed += directory->remove(file.name) ? 1 : 0;
  return removed;
}

CacheVerification BinaryStore::verify() {
  CacheVerification result;
  const auto directory = Directory::open_private(directory_);
  if (!directory) return result;
  directory->remove_stale_temporaries(kTemporaryAge);
  for (const auto& file : entry_files(*directory)) {
    const auto intact = is_intact(*directory, file);
    if (!intact) continue;
    if (*intact) {
      ++result.good;
      result.bytes += file.bytes;
    } else {
      ++result.bad;
      directory->remove(file.name);
    }
  }
  return result;
}

BinaryStore* default_binary_store() {
  const auto megabytes = std::clamp<std::int64_t>(env::integer("NETCL_CACHE_MB"), 0, 1 << 30);
  const auto directory = cache_directory();
  if (megabytes == 0 || directory.empty()) return nullptr;
  static std::mutex mutex;
  // Leaked: programs may be built and stored until the very end of the process.
  static auto* stores =
      new std::map<std::pair<std::string, std::int64_t>, std::unique_ptr<BinaryStore>>();
  const std::lock_guard lock(mutex);
  auto& store = (*stores)[{directory, megabytes}];
  if (!store)
    store = std::make_unique<BinaryStore>(directory, static_cast<std::uint64_t>(megabytes) << 20);
  return store.get();
}

namespace {

// For looking at what is there, whatever the cap says; nothing when no directory is known.
std::optional<BinaryStore> inspected_store() {
  const auto directory = cache_directory();
  if (directory.empty()) return std::nullopt;
  return std::optional<BinaryStore>(std::in_place, directory, 0);
}

}  // namespace

std::vector<CacheEntry> program_cache_list() {
  auto store = inspected_store();
  return store ? store->list() : std::vector<CacheEntry>();
}

std::size_t program_cache_clear() {
  auto store = inspected_store();
  return store ? store->clear() : 0;
}

CacheVerification program_cache_verify() {
  auto store = inspected_store();
  return store ? store->verify() : CacheVerification();
}

}  // namespace netcl
