// The compiled programs that netcl keeps on disk, for tools that list, empty or check them.
// docs/files.md describes the directory and the format.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netcl {

struct CacheEntry {
  std::string key;          // 64 hex digits
  std::string description;  // kernels and device, printable; "(damaged)" when it cannot be read
  std::uint64_t bytes = 0;
  std::chrono::system_clock::time_point last_used;
};

struct CacheVerification {
  std::size_t good = 0;
  std::size_t bad = 0;      // found damaged, and removed
  std::uint64_t bytes = 0;  // of the good ones
};

// What this process did so far.
struct ProgramCacheStats {
  std::uint64_t memory_hits = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t compiled = 0;
  std::uint64_t failed = 0;
};

// All three look into cache_directory(), also when NETCL_CACHE_MB=0 keeps netcl from using it. No
// directory means no entries; FileError when it must not be trusted (another owner, a symbolic
// link).
std::vector<CacheEntry> program_cache_list();  // most recently used first
std::size_t program_cache_clear();             // returns how many entries were removed
CacheVerification program_cache_verify();      // reads every byte

ProgramCacheStats program_cache_stats();

}  // namespace netcl
