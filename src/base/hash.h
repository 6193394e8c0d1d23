// SHA-256, for cache keys and checksums of files. Not a secret-keeping tool: there is no MAC here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace netcl {

using Sha256Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view text);
  // Length first, then the text: ("ab", "c") and ("a", "bc") are different inputs.
  Sha256& update_field(std::string_view text);

  // Of everything so far; more may be added afterwards.
  Sha256Digest digest() const;
  std::string hex() const;  // 64 lower-case digits

 private:
  void process_block(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_bytes_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

}  // namespace netcl
