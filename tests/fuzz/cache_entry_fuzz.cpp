// Files of the program cache. Behind a first byte that is odd the checksum is made right, so that
// the damage gets past it.
#include "base/hash.h"
#include "fuzz/fuzz.h"
#include "kernel/binary_store.h"

FUZZ_TARGET(cache_entry) {
  using namespace netcl;
  fuzz::Reader reader(input);
  const bool sign = reader.byte() % 2 == 1;
  const auto rest = std::as_bytes(reader.rest());
  std::vector<std::byte> file(rest.begin(), rest.end());
  if (sign) {
    const auto digest = Sha256().update(std::span<const std::byte>(file)).digest();
    file.insert(file.end(), digest.begin(), digest.end());
  }
  const auto shown = peek_description(std::span(file).first(std::min(file.size(), kPeekBytes)));
  for (const unsigned char c : shown)
    fuzz::require(c >= 32 && c != 127, "what is listed goes to a terminal");
  const std::string key(64, 'a');
  const auto program = decode_entry(key, file);
  fuzz::require(encode_entry(key, program) == file, "an entry is what it was made from");
}
