// IDX and CIFAR files, written byte by byte.
#include <gtest/gtest.h>

#include "netcl/io.h"
#include "support/errors.h"
#include "support/gzip.h"
#include "support/host_arrays.h"
#include "support/temp_dir.h"

namespace netcl::io {
namespace {

using test::array_of;
using test::gzip;
using test::message_of;
using test::same_bits;
using test::TempDir;
using test::write_text;

std::string idx(int type, const std::vector<std::uint32_t>& sizes, const std::string& values) {
  std::string file = {'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const auto size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  return file + values;
}

TEST(Idx, ReadsEveryTypePlainAndPacked) {
  const TempDir dir;
  const std::pair<std::string, HostArray> cases[] = {
      {idx(0x08, {2, 2}, std::string("\0\1\2\xff", 4)),
       array_of<std::uint8_t>({2, 2}, {0, 1, 2, 255})},
      {idx(0x09, {2}, "\1\xff"), array_of<std::int8_t>({2}, {1, -1})},
      {idx(0x0B, {3}, std::string("\1\2\xff\xfe\x80\0", 6)),
       array_of<std::int32_t>({3}, {258, -2, -32768})},
      {idx(0x0C, {1, 2}, std::string("\0\0\1\2\xff\xff\xff\xfe", 8)),
       array_of<std::int32_t>({1, 2}, {258, -2})},
      {idx(0x0D, {1}, std::string("\x3f\x80\0\0", 4)), array_of<float>({1}, {1.0f})},
      {idx(0x0E, {1}, std::string("\xbf\xf0\0\0\0\0\0\0", 8)), array_of<double>({1}, {-1.0})},
      {idx(0x08, {0, 28}, ""), array_of<std::uint8_t>({0, 28}, {})},
      {idx(0x08, {}, "\7"), array_of<std::uint8_t>({}, {7})},
  };
  for (const auto& [text, array] : cases) {
    write_text(dir / "plain", text);
    EXPECT_TRUE(same_bits(load_idx(dir / "plain"), array)) << array.shape().to_string();
    write_text(dir / "packed", gzip(text));
    EXPECT_TRUE(same_bits(load_idx(dir / "packed"), array)) << array.shape().to_string();
    // Two gzip members one after the other are one content.
    write_text(dir / "packed", gzip(text.substr(0, 3)) + gzip(text.substr(3)));
    EXPECT_TRUE(same_bits(load_idx(dir / "packed"), array)) << array.shape().to_string();
  }
}

TEST(Idx, RefusesWhatIsWrongAndSaysWhat) {
  const TempDir dir;
  const std::pair<std::string, const char*> cases[] = {
      {"", "4 bytes more are needed"},
      {std::string("\0\0\x08", 3), "1 bytes more are needed"},
      {std::string("\0\1\x08\1\0\0\0\0", 8), "two zero bytes"},
      {idx(0x0A, {1}, "x"), "0x0a"},
      {idx(0x08, {2}, "x"), "values of the shape (2)"},
      {idx(0x08, {2}, "xyz"), "must end after 10 bytes"},
      {idx(0x08, {0xffffffff, 0xffffffff}, "x"), "values of the shape (4294967295, 4294967295)"},
      {idx(0x0E, {0xffffffff, 0xffffffff, 0xffffffff}, "x"), "values of the shape"},
      {idx(0x0B, {0xffffffff, 0x7fffffff}, "x"), "values of the shape"},
      {idx(0x08, {1, 1}, "x").substr(0, 9), "more are needed"},
      {gzip(idx(0x08, {2}, "x")), "1 bytes more are needed"},
      {gzip(idx(0x08, {2}, "xyz")), "must end after 10 bytes"},
      {gzip(idx(0x08, {200'000'000}, "x")), "values of the shape (200000000)"},
      {gzip(idx(0x08, {2}, "xy")).substr(0, 20), ""},
      {"\x1f\x8b", ""},
  };
  for (const auto& [text, part] : cases) {
    write_text(dir / "f", text);
    const auto message = message_of<FormatError>([&] { load_idx(dir / "f"); });
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n  is not in " << message;
    EXPECT_NE(message.find(dir / "f"), std::string::npos) << message;
  }
  auto damaged = gzip(idx(0x08, {4}, "abcd"));
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  write_text(dir / "f", damaged);
  EXPECT_THROW(load_idx(dir / "f"), FormatError);
  EXPECT_THROW(load_idx(dir / "absent"), FileError);
}

TEST(Idx, UnpacksNoMoreThanTheHeaderSays) {
  const TempDir dir;
  // 64 MB of zeros in 64 kB; the header wants ten bytes.
  write_text(dir / "bomb", gzip(idx(0x08, {10}, std::string(64 << 20, '\0'))));
  const auto message = message_of<FormatError>([&] { load_idx(dir / "bomb"); });
  EXPECT_NE(message.find("must end after 18 bytes"), std::string::npos) << message;
}

std::string record(std::string labels, char first) {
  std::string text = std::move(labels);
  for (int i = 0; i < 3072; ++i) text += static_cast<char>(first + i);
  return text;
}

TEST(Cifar, ReadsRecords) {
  const TempDir dir;
  std::string ten, hundred;
  for (int i = 0; i < 300; ++i) {  // more than are read at once
    ten += record({static_cast<char>(i % 10)}, static_cast<char>(i));
    hundred += record({'\1', static_cast<char>(i % 100)}, static_cast<char>(i));
  }
  write_text(dir / "ten", ten);
  write_text(dir / "hundred", hundred);
  for (const auto& [arrays, classes] : {std::pair(load_cifar10_file(dir / "ten"), 10),
                                        std::pair(load_cifar100_file(dir / "hundred"), 100)}) {
    ASSERT_EQ(arrays.images.shape(), (Shape{300, 3, 32, 32}));
    ASSERT_EQ(arrays.labels.shape(), (Shape{300}));
    for (int i = 0; i < 300; ++i) {
      EXPECT_EQ(arrays.labels.at(i), i % classes);
      EXPECT_EQ(arrays.images.at(i * 3072), i % 256);
      EXPECT_EQ(arrays.images.at(i * 3072 + 3071), (i + 3071) % 256);
    }
  }
  EXPECT_THROW(load_cifar100_file(dir / "ten"), FormatError);
  write_text(dir / "bad", ten + record("\x0a", 0));
  const auto message = message_of<FormatError>([&] { load_cifar10_file(dir / "bad"); });
  EXPECT_NE(message.find("below 10: record 300 has 10"), std::string::npos) << message;
  write_text(dir / "bad", ten.substr(1));
  EXPECT_THROW(load_cifar10_file(dir / "bad"), FormatError);
  write_text(dir / "bad", "");
  EXPECT_THROW(load_cifar10_file(dir / "bad"), FormatError);
  EXPECT_THROW(load_cifar10_file(dir / "absent"), FileError);
}

}  // namespace
}  // namespace netcl::io
