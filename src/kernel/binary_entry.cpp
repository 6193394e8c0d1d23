// The file of one stored program: magic, version, key, three lengths, three texts, SHA-256 of all
// of it. The key is inside, so that a file under another entry's name is not taken for that entry.
#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/hash.h"
#include "kernel/binary_store.h"

namespace netcl {
namespace {

constexpr std::string_view kMagic = "NETCLPRG";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kKeyBytes = 64;
constexpr std::size_t kVersionAt = 8, kKeyAt = 12, kLengthsAt = kKeyAt + kKeyBytes;
constexpr std::size_t kHeaderBytes = kLengthsAt + 3 * 8;
constexpr std::size_t kDigestBytes = sizeof(Sha256Digest);

using Bytes = std::span<const std::byte>;

void append(std::vector<std::byte>& file, Bytes bytes) {
  file.insert(file.end(), bytes.begin(), bytes.end());
}

void append(std::vector<std::byte>& file, std::string_view text) {
  append(file, std::as_bytes(std::span(text.data(), text.size())));
}

// Little-endian on every host.
void append_number(std::vector<std::byte>& file, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t number_at(Bytes file, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::to_integer<std::uint64_t>(file[offset + i]) << (8 * i);
  return value;
}

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool has_header(Bytes file) {
  return file.size() >= kHeaderBytes && text_of(file.first(kMagic.size())) == kMagic &&
         number_at(file, kVersionAt, 4) == kVersion;
}

// Three lengths that fit `available` exactly; compared one by one, because a sum could wrap.
std::array<std::size_t, 3> checked_lengths(Bytes file, std::size_t available) {
  std::array<std::size_t, 3> lengths{};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto length = number_at(file, kLengthsAt + 8 * i, 8);
    check<FormatError>(length <= available, "[program cache] the lengths must fit the file: {}",
                       length);
    lengths[i] = length;
    available -= length;
  }
  check<FormatError>(available == 0, "[program cache] nothing may follow the entry: {} bytes",
                     available);
  return lengths;
}

}  // namespace

std::vector<std::byte> encode_entry(const std::string& key, const StoredProgram& program) {
  std::vector<std::byte> file;
  file.reserve(kHeaderBytes + program.description.size() + program.metadata.size() +
               program.binary.size() + kDigestBytes);
  append(file, kMagic);
  append_number(file, kVersion, 4);
  append(file, key);
  append_number(file, program.description.size(), 8);
  append_number(file, program.metadata.size(), 8);
  append_number(file, program.binary.size(), 8);
  append(file, program.description);
  append(file, program.metadata);
  append(file, Bytes(program.binary));
  append(file, Bytes(Sha256().update(Bytes(file)).digest()));
  return file;
}

StoredProgram decode_entry(const std::string& key, Bytes file) {
  check<FormatError>(has_header(file) && file.size() >= kHeaderBytes + kDigestBytes,
                     "[program cache] the file must be an entry of version {}: {} bytes", kVersion,
                     file.size());
  const auto content = file.first(file.size() - kDigestBytes);
  const auto digest = Sha256().update(content).digest();
  check<FormatError>(std::ranges::equal(digest, file.last(kDigestBytes)),
                     "[program cache] the checksum must match: entry {}", key);
  const auto stored_key = text_of(content.subspan(kKeyAt, kKeyBytes));
  check<FormatError>(stored_key == key,
                     "[program cache] the entry must belong to its name: {} in {}", stored_key,
                     key);
  const auto lengths = checked_lengths(content, content.size() - kHeaderBytes);
  auto rest = content.subspan(kHeaderBytes);
  StoredProgram program;
  program.description = text_of(rest.first(lengths[0]));
  program.metadata = text_of(rest.subspan(lengths[0], lengths[1]));
  rest = rest.subspan(lengths[0] + lengths[1]);
  program.binary.assign(rest.begin(), rest.end());
  return program;
}

std::string peek_description(Bytes head) {
  if (!has_header(head)) return "(damaged)";
  const auto rest = head.subspan(kHeaderBytes);
  const auto length = std::min<std::uint64_t>(number_at(head, kLengthsAt, 8), rest.size());
  auto text = text_of(rest.first(length));
  // It goes to a terminal, and nobody has checked it yet.
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 32 || c == 127; }, '?');
  return text;
}

}  // namespace netcl
