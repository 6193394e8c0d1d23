// SHA-256 against published vectors: FIPS 180-2 appendix B and NIST's SHA256ShortMsg/LongMsg files.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace netcl {
namespace {

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

struct Vector {
  std::string message, digest;
};

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> list = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "o"
       "pqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {from_hex("d3"), "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
      {from_hex("bd"), "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"},
      {from_hex("c98c8e55"), "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504"},
      // Zero bytes around the edges of the padding, from NIST's additional vectors.
      {std::string(55, '\0'), "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
      {std::string(56, '\0'), "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
      {std::string(57, '\0'), "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785"},
      {std::string(64, '\0'), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
      {std::string(1000, '\0'), "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53"},
      {std::string(1000, 'A'), "c2e686823489ced2017f6059b8b239318b6364f6dcd835d0a519105a1eadd6e4"},
      {std::string(1005, 'U'), "f4d62ddec0f3dd90ea1380fa16a5ff8dc4c54b21740650f24afc4120903552b0"},
  };
  return list;
}

TEST(Sha256, MatchesThePublishedVectors) {
  for (const auto& [message, digest] : vectors())
    EXPECT_EQ(sha256_hex(message), digest) << message.size() << " bytes";
}

TEST(Sha256, DoesNotDependOnHowTheInputIsCut) {
  for (const auto& [message, digest] : vectors()) {
    if (message.size() > 2000) continue;
    for (std::size_t step = 1; step <= 130; ++step) {
      Sha256 hash;
      for (std::size_t at = 0; at < message.size(); at += step)
        hash.update(std::string_view(message).substr(at, step));
      ASSERT_EQ(hash.hex(), digest) << message.size() << " bytes in steps of " << step;
    }
  }
}

TEST(Sha256, MayGoOnAfterADigest) {
  Sha256 hash;
  hash.update("ab");
  EXPECT_EQ(hash.hex(), sha256_hex("ab"));
  hash.update("c");
  EXPECT_EQ(hash.hex(), vectors()[1].digest);
  EXPECT_EQ(hash.hex(), vectors()[1].digest);
}

TEST(Sha256, FieldsDoNotRunIntoEachOther) {
  const auto of = [](std::initializer_list<std::string_view> fields) {
    Sha256 hash;
    for (const auto field : fields) hash.update_field(field);
    return hash.hex();
  };
  const std::set<std::string> all = {of({"ab", "c"}), of({"a", "bc"}),        of({"abc"}),
                                     of({"abc", ""}), of({"", "abc"}),        of({}),
                                     of({""}),        of({std::string(1, 0)})};
  EXPECT_EQ(all.size(), 8u);
  // Eight little-endian bytes of length, so that stored keys stay valid on every machine.
  EXPECT_EQ(of({"abc"}), sha256_hex(std::string("\3\0\0\0\0\0\0\0abc", 11)));
}

}  // namespace
}  // namespace netcl
