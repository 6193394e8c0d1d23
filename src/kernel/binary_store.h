// The disk half of the program cache: one checksummed file per compiled program, shared by all
// processes of a user. Knows neither OpenCL nor what the key is made of.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "netcl/program_cache.h"

namespace netcl {

struct StoredProgram {
  std::string description;  // kernel names, device: for listing
  std::string metadata;     // JSON text, opaque here
  std::vector<std::byte> binary;
};

// Any number of threads and processes may use one directory. Trouble with the disk is one warning
// and then a miss; what get and put do throw is ArgumentError (a malformed key) and Interrupted.
class BinaryStore {
 public:
  // Entries are kept in `directory`/programs, at most `max_bytes` of them together.
  BinaryStore(const std::string& directory, std::uint64_t max_bytes);

  // A hit makes the entry the most recently used one. A damaged entry is removed.
  std::optional<StoredProgram> get(const std::string& key);
  void put(const std::string& key, const StoredProgram& program);
  // For a binary that is intact but that the driver refuses.
  void remove(const std::string& key);

  std::vector<CacheEntry> list() const;
  std::size_t clear();
  CacheVerification verify();
  const std::string& directory() const { return directory_; }

 private:
  void evict(const Directory& directory) const;
  void warn_disk(const char* trouble) noexcept;
  void warn_damage(const char* damage) noexcept;

  std::string directory_;
  std::uint64_t max_bytes_;
  std::atomic<bool> warned_disk_{false}, warned_damage_{false};
};

// The store of cache_directory() with the cap of NETCL_CACHE_MB; null when the cap is 0 or no
// directory is known. Looks at the environment at each call; a store lives until the process ends.
BinaryStore* default_binary_store();

// The file format, here for its tests. `decode_entry` throws FormatError.
std::vector<std::byte> encode_entry(const std::string& key, const StoredProgram& program);
StoredProgram decode_entry(const std::string& key, std::span<const std::byte> file);
// From the first bytes of a file, unchecked; "(damaged)" when they are not those of an entry.
std::string peek_description(std::span<const std::byte> head);
inline constexpr std::size_t kPeekBytes = 4096;

}  // namespace netcl
