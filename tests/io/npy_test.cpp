// npy and npz: round trips, files written byte by byte, and everything that must be refused.
#include <gtest/gtest.h>
#include <zlib.h>

#include "netcl/io.h"
#include "support/errors.h"
#include "support/host_arrays.h"
#include "support/temp_dir.h"

namespace netcl::io {
namespace {

using test::array_of;
using test::message_of;
using test::patterned;
using test::read_text;
using test::same_bits;
using test::TempDir;
using test::write_text;

constexpr DType kNumpyDTypes[] = {DType::float16, DType::float32, DType::float64, DType::int8,
                                  DType::uint8,   DType::int32,   DType::int64,   DType::boolean};

// An npy file with this literal, of version 1, 2 or 3.
std::string npy(const std::string& literal, const std::string& data, char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0';
  const auto length = static_cast<std::uint32_t>(literal.size());
  file.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return file + literal + data;
}

TEST(Npy, KeepsEveryDtypeAndShape) {
  const TempDir dir;
  for (const auto dtype : kNumpyDTypes)
    for (const auto& shape : test::kManyShapes) {
      const auto array = patterned(shape, dtype);
      save_npy(dir / "f.npy", array);
      EXPECT_TRUE(same_bits(load_npy(dir / "f.npy"), array)) << name_of(dtype) << shape.to_string();
    }
  EXPECT_THROW(save_npy(dir / "g", patterned({1}, DType::bfloat16)), DtypeError);
  EXPECT_THROW(save_npy(dir / "g", HostArray()), ArgumentError);
}

TEST(Npy, WritesTheseBytes) {
  const TempDir dir;
  save_npy(dir / "f", array_of<std::int32_t>({2}, {1, -2}));
  std::string literal = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  literal.resize(128 - 10 - 1, ' ');
  EXPECT_EQ(read_text(dir / "f"), npy(literal + '\n', std::string("\1\0\0\0\xfe\xff\xff\xff", 8)));
}

TEST(Npy, ReadsAllVersionsAndWaysOfWriting) {
  const TempDir dir;
  const std::string values("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0", 24);
  const auto c_order = array_of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto from_fortran = array_of<std::int32_t>({2, 3}, {1, 3, 5, 2, 4, 6});
  for (const char version : {1, 2, 3}) {
    write_text(dir / "f", npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n",
                              values, version));
    EXPECT_TRUE(same_bits(load_npy(dir / "f"), c_order));
    write_text(dir / "f",
               npy("{\"shape\":(2,3),'fortran_order':True,  \"descr\":\"<i4\"}", values, version));
    EXPECT_TRUE(same_bits(load_npy(dir / "f"), from_fortran));
  }
  write_text(dir / "f", npy("{'descr': '=i4', 'fortran_order': False, 'shape': (2L, 3L)}", values));
  EXPECT_TRUE(same_bits(load_npy(dir / "f"), c_order));
  write_text(dir / "f", npy("{'descr': '>u1', 'fortran_order': True, 'shape': ()}", "\7"));
  EXPECT_TRUE(same_bits(load_npy(dir / "f"), array_of<std::uint8_t>({}, {7})));
  write_text(dir / "f", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}",
                            std::string("\0\5", 2)));
  EXPECT_EQ(*(static_cast<const unsigned char*>(load_npy(dir / "f").data()) + 1), 1);
}

TEST(Npy, FortranOrderOfThreeAxes) {
  const TempDir dir;
  std::string values(24, '\0');
  for (int i = 0; i < 24; ++i) values[static_cast<std::size_t>(i)] = static_cast<char>(i);
  write_text(dir / "f", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", values));
  const auto array = load_npy(dir / "f");
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) EXPECT_EQ(array.at((i * 3 + j) * 4 + k), i + 2 * j + 6 * k);
}

TEST(Npy, RefusesWhatIsWrongAndSaysWhat) {
  const TempDir dir;
  const std::string rest = ", 'fortran_order': False, 'shape': (1,)}";
  const std::pair<std::string, const char*> cases[] = {
      {"", "8 bytes from 0 on: it has 0"},
      {"\x93NUMPY\1", "8 bytes"},
      {"NUMPY 1.0 and more", "begin with"},
      {npy("{}", "", 4), "version must be 1, 2 or 3: 4"},
      {npy("{}", "", 0), "version must be 1, 2 or 3: 0"},
      {npy("{}", ""), "are needed"},
      {npy("{'descr': '>f4'" + rest, "1234"), "big-endian: dtype \">f4\""},
      {npy("{'descr': '|O'" + rest, "1234"), "Python objects"},
      {npy("{'descr': '<U4'" + rest, "1234"), "\"<U4\""},
      {npy("{'descr': '<u2'" + rest, "12"), "\"<u2\""},
      {npy("{'descr': '<c8'" + rest, "12345678"), "\"<c8\""},
      {npy("{'descr': ''" + rest, "1234"), "dtype must be one of"},
      {npy("{'descr': '<'" + rest, "1234"), "dtype must be one of"},
      {npy("{'descr': 'xf4'" + rest, "1234"), "dtype must be one of"},
      {npy("{'descr': [('a', '<f4')]" + rest, "1234"), "structured"},
      {npy("{'descr': '<f4', 'descr': '<f4'" + rest, "1234"), "once"},
      {npy("{'other': '<f4'" + rest, "1234"), "\"other\""},
      {npy("{'descr': '<f4'" + rest + "x", "1234"), "follow the dictionary"},
      {npy("{'descr': '<f4'" + rest, "123"), "4 bytes of values must follow the header: 3"},
      {npy("{'descr': '<f4'" + rest, "12345"), "4 bytes of values must follow the header: 5"},
      {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "1234"), "True or False"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "1234"), "a tuple"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': [1]}", "1234"), "'(' is needed"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "1234"), "not negative"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""),
       "63 bits"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", ""),
       "63 bits"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427, 4)}", "1234"),
       "73786976294832 bytes of values must follow"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "1234"), "'}' is needed"},
      {npy("{'descr': '<f4", ""), "must end"},
      {npy("{'descr': '<f4'", "").substr(0, 15), "it has"},
      {npy("{'de\\x73cr': '<f4'" + rest, "1234"), "escapes"},
  };
  for (const auto& [text, part] : cases) {
    write_text(dir / "f", text);
    const auto message = message_of<FormatError>([&] { load_npy(dir / "f"); });
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n  is not in " << message;
    EXPECT_NE(message.find(dir / "f"), std::string::npos) << message;
  }
  EXPECT_THROW(load_npy(dir / "absent"), FileError);
}

TEST(Npz, KeepsEveryDtypeAndShape) {
  const TempDir dir;
  ArrayMap arrays;
  unsigned seed = 0;
  for (const auto dtype : kNumpyDTypes)
    for (const auto& shape : test::kManyShapes)
      arrays[std::string(name_of(dtype)) + shape.to_string()] = patterned(shape, dtype, ++seed);
  arrays["\xc3\xa4/b.c"] = patterned({3}, DType::int8);
  for (const auto compression : {Compression::none, Compression::deflate}) {
    save_npz(dir / "f.npz", arrays, compression);
    const auto loaded = load_npz(dir / "f.npz");
    ASSERT_EQ(loaded.size(), arrays.size());
    for (const auto& [name, array] : arrays) EXPECT_TRUE(same_bits(loaded.at(name), array)) << name;
  }
  save_npz(dir / "f.npz", {});
  EXPECT_TRUE(load_npz(dir / "f.npz").empty());
  EXPECT_THROW(save_npz(dir / "g", {{"a", patterned({1}, DType::bfloat16)}}), DtypeError);
  EXPECT_THROW(save_npz(dir / "g", {{"", patterned({1}, DType::int8)}}), ArgumentError);
  EXPECT_THROW(save_npz(dir / "none/g", {{"a", patterned({1}, DType::int8)}}), FileError);
  EXPECT_EQ(test::count_files(dir.path()), 1u);
}

TEST(Npz, DeflatesAndIsTheSameEachTime) {
  const TempDir dir;
  const ArrayMap zeros = {{"z", array_of<std::uint8_t>({0}, {})},
                          {"m", HostArray({1 << 20}, DType::uint8)}};
  auto bytes = HostArray(zeros.at("m")).values<std::uint8_t>();
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
  save_npz(dir / "a", zeros, Compression::deflate);
  save_npz(dir / "b", zeros, Compression::deflate);
  EXPECT_EQ(read_text(dir / "a"), read_text(dir / "b"));
  EXPECT_LT(read_text(dir / "a").size(), 5000u);
  save_npz(dir / "a", zeros);
  EXPECT_GT(read_text(dir / "a").size(), 1u << 20);
}

// One member of a zip archive, written by hand.
struct Member {
  std::string name, content;
  std::uint16_t method = 0, flags = 0;
  std::uint32_t claimed_size = 0;  // 0: the right one
};

void put(std::string& out, std::uint64_t value, std::size_t bytes) {
  out.append(reinterpret_cast<const char*>(&value), bytes);
}

std::string zip_of(const std::vector<Member>& members) {
  std::string out, directory;
  for (const auto& m : members) {
    const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(m.content.data()),
                             static_cast<uInt>(m.content.size()));
    std::string common;
    put(common, 20, 2), put(common, m.flags, 2), put(common, m.method, 2), put(common, 0x210000, 4);
    put(common, crc, 4), put(common, m.content.size(), 4);
    put(common, m.claimed_size != 0 ? m.claimed_size : m.content.size(), 4);
    put(common, m.name.size(), 2), put(common, 0, 2);
    directory += "PK\1\2";
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4);
    put(directory, out.size(), 4);
    directory += m.name;
    out += "PK\3\4" + common + m.name + m.content;
  }
  const auto start = out.size();
  out += directory + "PK\5\6";
  put(out, 0, 4), put(out, members.size(), 2), put(out, members.size(), 2);
  put(out, directory.size(), 4), put(out, start, 4), put(out, 0, 2);
  return out;
}

TEST(Npz, ReadsAnArchiveMadeByHandAndRefusesOthers) {
  const TempDir dir;
  const auto good = npy("{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}", "\1\2");
  write_text(dir / "f", zip_of({{"a.npy", good}, {"b.npy", good}}));
  EXPECT_TRUE(same_bits(load_npz(dir / "f").at("b"), array_of<std::int8_t>({2}, {1, 2})));
  const auto zip64 = static_cast<std::uint32_t>(2'000'000'000);
  const std::pair<std::string, const char*> cases[] = {
      {"", "sound zip archive"},
      {"PK", "sound zip archive"},
      {good, "sound zip archive"},
      {zip_of({{"a.txt", "hello"}}), "npy files: \"a.txt\""},
      {zip_of({{"a.npy", "hello"}}), "array \"a\""},
      {zip_of({{"a.npy", good + "x"}}),
       "2 bytes of values must follow the header: the member has 3"},
      {zip_of({{"a.npy", good.substr(0, good.size() - 1)}}), "2 bytes of values"},
      {zip_of({{"a.npy", good, 0, 1}}), "encrypted"},
      {zip_of({{"a.npy", good, 12}}), "stored or deflated: method 12"},
      {zip_of({{"a.npy", good, 8}}), "\"a\""},
      {zip_of({{"a.npy", good, 8, 0, zip64}}), "cannot have 2000000000 bytes"},
      {zip_of({{"a.npy", good, 0, 0, zip64}}), "cannot have 2000000000 bytes"},
  };
  for (const auto& [text, part] : cases) {
    write_text(dir / "f", text);
    const auto message = message_of<FormatError>([&] { load_npz(dir / "f"); });
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n  is not in " << message;
    EXPECT_NE(message.find(dir / "f"), std::string::npos) << message;
  }
  // One byte of the values changed: the checksum finds it.
  auto damaged = zip_of({{"a.npy", good}});
  damaged[damaged.find("\1\2PK")] = '\3';
  write_text(dir / "f", damaged);
  EXPECT_THROW(load_npz(dir / "f"), FormatError);
  EXPECT_THROW(load_npz(dir / "absent"), FileError);
}

TEST(Npz, MembersThatShareBytesAreRefused) {
  const TempDir dir;
  const auto good =
      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1000,)}", std::string(1000, 'x'));
  // Two entries of the directory for the same content.
  auto archive = zip_of({{"a.npy", good}});
  const auto at = archive.find("PK\1\2"), end = archive.find("PK\5\6");
  auto entry = archive.substr(at, end - at);
  entry[46] = 'b';
  auto tail = archive.substr(end);
  tail[8] = tail[10] = 2;
  tail[12] = static_cast<char>(2 * entry.size());
  write_text(dir / "f", archive.substr(0, end) + entry + tail);
  EXPECT_THROW(load_npz(dir / "f"), FormatError);
}

}  // namespace
}  // namespace netcl::io
