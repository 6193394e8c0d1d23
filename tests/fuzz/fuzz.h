// What the fuzz targets share. A target takes any bytes; errors of netcl are what bad ones should
// give. Everything else is a finding: another exception, a report of a sanitizer, memory that runs
// out. Each target is an executable of its own with libFuzzer (`make fuzz`), and all of them
// together are one test that replays the corpus with some damage done to it (replay.cpp).
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/error.h"
#include "netcl/tensor.h"

namespace netcl::fuzz {

using Bytes = std::span<const std::uint8_t>;
using Target = void (*)(Bytes);

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// True: the input was accepted.
inline bool run_guarded(Target target, Bytes input) {
  try {
    target(input);
    return true;
  } catch (const OutOfMemory&) {
    throw;  // no input may ask for so much
  } catch (const Error&) {
    return false;
  }
}

// What must hold of an accepted input. Not an assertion: it also holds in release builds.
inline void require(bool holds, const char* rule) {
  if (!holds) throw std::logic_error(rule);
}

struct NamedTarget {
  std::string name;
  Target run;
};
inline std::vector<NamedTarget>& targets() {
  static std::vector<NamedTarget> all;
  return all;
}

// A file in memory: the readers get its name.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("netcl-fuzz", MFD_CLOEXEC)) {
    require(fd_ >= 0, "memfd_create failed");
    path_ = "/proc/self/fd/" + std::to_string(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  const std::string& write(Bytes bytes) {
    require(::ftruncate(fd_, 0) == 0 &&
                ::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
            "writing the file in memory failed");
    return path_;
  }

 private:
  int fd_;
  std::string path_;
};

// Reads every byte, so that memory that was never written, or is not there, shows.
inline void touch(const HostArray& array) {
  [[maybe_unused]] static volatile std::uint64_t sink;
  std::uint64_t sum = 0;
  const auto* bytes = static_cast<const unsigned char*>(array.data());
  for (std::size_t i = 0; i < array.nbytes(); ++i) sum += bytes[i];
  sink = sum;
}

// Takes numbers from the input; 0 behind its end.
class Reader {
 public:
  explicit Reader(Bytes input) : input_(input) {}
  bool at_end() const { return at_ >= input_.size(); }
  std::uint8_t byte() { return at_end() ? std::uint8_t{0} : input_[at_++]; }
  std::size_t below(std::size_t bound) { return byte() % bound; }
  // Mostly small ones of both signs, sometimes any of 64 bits.
  std::int64_t number() {
    const auto first = byte();
    if (first < 0xf0) return static_cast<std::int64_t>(first % 16) - 6;
    if (first < 0xf8) return static_cast<std::int8_t>(byte());
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return static_cast<std::int64_t>(value);
  }
  std::vector<std::int64_t> numbers(std::size_t most) {
    std::vector<std::int64_t> result(below(most + 1));
    for (auto& one : result) one = number();
    return result;
  }
  Bytes rest() {
    const auto result = input_.subspan(at_);
    at_ = input_.size();
    return result;
  }

 private:
  Bytes input_;
  std::size_t at_ = 0;
};

}  // namespace netcl::fuzz

// FUZZ_TARGET(npy) { ... input ... }
#ifdef FUZZ_WITH_LIBFUZZER
#define FUZZ_TARGET(name)                                                                 \
  static void fuzz_##name(netcl::fuzz::Bytes input);                                      \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {     \
    return netcl::fuzz::run_guarded(fuzz_##name, netcl::fuzz::Bytes(data, size)) ? 0 : 0; \
  }                                                                                       \
  static void fuzz_##name(netcl::fuzz::Bytes input)
#else
#define FUZZ_TARGET(name)                                                                \
  static void fuzz_##name(netcl::fuzz::Bytes input);                                     \
  [[maybe_unused]] static const auto& registered_##name =                                \
      netcl::fuzz::targets().emplace_back(netcl::fuzz::NamedTarget{#name, fuzz_##name}); \
  static void fuzz_##name(netcl::fuzz::Bytes input)
#endif
