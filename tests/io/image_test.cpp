// Images: what is written is read, all kinds of PNG and JPEG come out as 8 bits, limits hold.
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <cmath>

#include "netcl/io.h"
#include "support/errors.h"
#include "support/host_arrays.h"
#include "support/jpeg.h"
#include "support/temp_dir.h"

namespace netcl::io {
namespace {

using test::array_of;
using test::message_of;
using test::patterned;
using test::same_bits;
using test::TempDir;
using test::write_text;

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string chunk(const std::string& type, const std::string& data) {
  const auto body = type + data;
  const auto crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(crc));
}

struct PngKind {
  std::uint32_t width, height;
  char depth, color;
};

// A PNG from its raw rows (each with its filter byte in front), written byte by byte.
std::string png(const PngKind& kind, const std::string& rows, const std::string& extra = "") {
  uLongf bytes = ::compressBound(rows.size());
  std::string packed(bytes, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &bytes,
             reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(bytes);
  const auto header = big_endian(kind.width) + big_endian(kind.height) +
                      std::string({kind.depth, kind.color, '\0', '\0', '\0'});
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + extra + chunk("IDAT", packed) +
         chunk("IEND", "");
}

TEST(Png, KeepsWhatIsSaved) {
  const TempDir dir;
  for (const auto& shape : {Shape{1, 1, 3}, Shape{7, 5, 3}, Shape{64, 33, 1}, Shape{3, 200, 3}}) {
    const auto image = patterned(shape, DType::uint8);
    save_png(dir / "f.png", image);
    EXPECT_TRUE(same_bits(load_image(dir / "f.png", Channels::as_stored), image));
  }
  const auto flat = patterned({4, 6}, DType::uint8);
  save_png(dir / "f.png", flat);
  const auto loaded = load_image(dir / "f.png", Channels::gray);
  EXPECT_EQ(loaded.shape(), (Shape{4, 6, 1}));
  EXPECT_EQ(loaded.at(23), flat.at(23));
}

TEST(Png, ReadsEveryKindAsEightBits) {
  const TempDir dir;
  const auto expect = [&](const std::string& file, std::initializer_list<std::uint8_t> rgb) {
    write_text(dir / "f", file);
    const auto image = load_image(dir / "f");
    ASSERT_EQ(image.shape(), (Shape{1, 2, 3}));
    EXPECT_TRUE(same_bits(image, array_of<std::uint8_t>({1, 2, 3}, rgb)));
  };
  expect(png({2, 1, 8, 2}, std::string("\0\1\2\3\4\5\6", 7)), {1, 2, 3, 4, 5, 6});
  expect(png({2, 1, 8, 0}, std::string("\0\7\x09", 3)), {7, 7, 7, 9, 9, 9});
  expect(png({2, 1, 1, 0}, std::string("\0\x40", 2)), {0, 0, 0, 255, 255, 255});
  expect(png({2, 1, 4, 0}, std::string("\0\x1f", 2)), {17, 17, 17, 255, 255, 255});
  expect(png({2, 1, 16, 0}, std::string("\0\xff\xff\x12\x12", 5)), {255, 255, 255, 18, 18, 18});
  expect(png({2, 1, 8, 4}, std::string("\0\x0a\x80\x14\0", 5)), {10, 10, 10, 20, 20, 20});
  expect(png({2, 1, 8, 6}, std::string("\0\1\2\3\x80\4\5\6\0", 9)), {1, 2, 3, 4, 5, 6});
  expect(png({2, 1, 8, 3}, std::string("\0\1\0", 3), chunk("PLTE", "abcxyz")),
         {'x', 'y', 'z', 'a', 'b', 'c'});
  // Transparency of a palette and a gamma leave the values alone.
  expect(png({2, 1, 8, 3}, std::string("\0\1\0", 3),
             chunk("gAMA", big_endian(100000)) + chunk("PLTE", "abcxyz") + chunk("tRNS", "\1\2")),
         {'x', 'y', 'z', 'a', 'b', 'c'});
}

TEST(Png, GrayIsTheLuma) {
  const TempDir dir;
  save_png(dir / "f", array_of<std::uint8_t>(
                          {1, 5, 3}, {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 9, 9, 9}));
  const auto gray = load_image(dir / "f", Channels::gray);
  EXPECT_TRUE(same_bits(gray, array_of<std::uint8_t>({1, 5, 1}, {76, 150, 29, 255, 9})));
}

TEST(Jpeg, ReadsAllColorSpaces) {
  const TempDir dir;
  const auto near = [&](const test::JpegKind& kind, std::vector<unsigned char> pixel,
                        std::vector<int> rgb) {
    std::vector<unsigned char> pixels;
    for (int i = 0; i < 17 * 9; ++i) pixels.insert(pixels.end(), pixel.begin(), pixel.end());
    write_text(dir / "f.jpg", test::jpeg(17, 9, pixels, kind));
    const auto image = load_image(dir / "f.jpg");
    ASSERT_EQ(image.shape(), (Shape{9, 17, 3}));
    for (std::int64_t i = 0; i < image.numel(); ++i)
      ASSERT_NEAR(image.at(i), rgb[static_cast<std::size_t>(i % 3)], 3) << i;
  };
  near({3}, {200, 100, 50}, {200, 100, 50});
  near({3, true}, {20, 100, 250}, {20, 100, 250});
  near({1}, {77}, {77, 77, 77});
  // libjpeg marks CMYK files as Adobe's, whose values are inverted.
  near({4}, {255, 128, 0, 255}, {255, 128, 0});
  write_text(dir / "g.jpg", test::jpeg(2, 2, {9, 9, 9, 9}, {1}));
  EXPECT_EQ(load_image(dir / "g.jpg", Channels::as_stored).shape(), (Shape{2, 2, 1}));
  EXPECT_EQ(load_image(dir / "g.jpg", Channels::gray).shape(), (Shape{2, 2, 1}));
}

TEST(Image, RefusesWhatIsWrongAndSaysWhat) {
  const TempDir dir;
  const auto good = png({2, 1, 8, 2}, std::string("\0\1\2\3\4\5\6", 7));
  const auto picture = test::jpeg(32, 32, std::vector<unsigned char>(3072, 5));
  const std::pair<std::string, const char*> cases[] = {
      {"", "must be a PNG or a JPEG"},
      {"GIF89a", "begins with \"GIF89a\""},
      {"\x89PNG\r\n\x1a\n", "ends too early"},
      {good.substr(0, good.size() - 5), "ends too early"},
      {good.substr(0, 50), "ends too early"},
      {png({2, 1, 8, 2}, std::string("\0\1\2\3", 4)), "the PNG must be sound"},
      {png({0, 1, 8, 2}, ""), "the PNG must be sound"},
      {png({2, 1, 7, 2}, "1"), "the PNG must be sound"},
      {png({2, 1, 8, 3}, std::string("\0\1\0", 3)), "the PNG must be sound"},
      {png({10000, 10000, 8, 2}, "1"), "10000 x 10000 pixels cannot be in"},
      {png({0x7fffffff, 0x7fffffff, 16, 6}, "1"), "2147483647 x 2147483647"},
      {"\xff\xd8", "the JPEG must be sound"},
      {"\xff\xd8\xff", "the JPEG must be sound"},
      {picture.substr(0, picture.size() - 10), "the JPEG must be sound"},
      {picture.substr(0, 200), "the JPEG must be sound"},
  };
  for (const auto& [text, part] : cases) {
    write_text(dir / "f", text);
    const auto message = message_of<FormatError>([&] { load_image(dir / "f"); });
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n  is not in " << message;
    EXPECT_NE(message.find(dir / "f"), std::string::npos) << message;
  }
  EXPECT_THROW(load_image(dir / "absent"), FileError);
  EXPECT_THROW(load_image(dir.path().string()), FileError);
}

TEST(Image, LimitsHold) {
  const TempDir dir;
  save_png(dir / "f", patterned({20, 30, 3}, DType::uint8));
  EXPECT_NO_THROW(load_image(dir / "f", Channels::rgb, {.side = 30, .pixels = 600}));
  for (const auto& limits : {ImageLimits{.side = 29}, ImageLimits{.pixels = 599}}) {
    const auto message =
        message_of<FormatError>([&] { load_image(dir / "f", Channels::rgb, limits); });
    EXPECT_NE(message.find("30 x 20"), std::string::npos) << message;
  }
  EXPECT_THROW(load_image(dir / "f", Channels::rgb, {.file_bytes = 50}), FormatError);
  auto wide = test::jpeg(16, 16, std::vector<unsigned char>(768, 5));
  const auto size = wide.find(std::string("\0\x10\0\x10", 4));
  wide.replace(size, 4, "\xff\xdc\xff\xdc");
  write_text(dir / "j", wide);
  const auto message = message_of<FormatError>([&] { load_image(dir / "j"); });
  EXPECT_NE(message.find("65500 x 65500"), std::string::npos) << message;
}

TEST(Jpeg, SizesThatCannotBeInTheFileAreRefused) {
  const TempDir dir;
  auto file = test::jpeg(16, 16, std::vector<unsigned char>(768, 5));
  file.replace(file.find(std::string("\0\x10\0\x10", 4)), 4, "\x20\x10\x20\x10");
  write_text(dir / "f", file);
  const auto message = message_of<FormatError>([&] { load_image(dir / "f"); });
  EXPECT_NE(message.find("8208 x 8208 pixels cannot be in"), std::string::npos) << message;
}

TEST(Png, RefusesToSaveWhatIsNoImage) {
  const TempDir dir;
  EXPECT_THROW(save_png(dir / "f", patterned({2, 2, 3}, DType::float32)), DtypeError);
  for (const auto& shape : {Shape{}, Shape{4}, Shape{2, 2, 2}, Shape{2, 2, 4}, Shape{0, 2, 3},
                            Shape{2, 0, 3}, Shape{1, 2, 2, 3}, Shape{1'000'001, 1}})
    EXPECT_THROW(save_png(dir / "f", patterned(shape, DType::uint8)), ShapeError);
  EXPECT_THROW(save_png(dir / "f", HostArray()), ArgumentError);
  EXPECT_THROW(save_png(dir / "none/f", patterned({2, 2}, DType::uint8)), FileError);
  EXPECT_EQ(test::count_files(dir.path()), 0u);
}

}  // namespace
}  // namespace netcl::io
