// Damaged files of every format: bits turned over, cut off, numbers replaced, bytes put in or taken
// out. Each must be read or be a FormatError; the sanitizers see the rest.
#include <gtest/gtest.h>
#include <zlib.h>

#include "netcl/io.h"
#include "support/gzip.h"
#include "support/host_arrays.h"
#include "support/jpeg.h"
#include "support/mutator.h"
#include "support/temp_dir.h"

namespace netcl::io {
namespace {

using test::Mutator;
using test::patterned;
using test::read_text;
using test::TempDir;
using test::write_text;

struct Outcome {
  int read = 0, refused = 0;
};

template <class F>
Outcome run(const std::string& good, int count, unsigned seed, F&& load) {
  const TempDir dir;
  write_text(dir / "f", good);
  EXPECT_NO_THROW(load(dir / "f"));
  Mutator mutate(seed);
  Outcome outcome;
  for (int i = 0; i < count; ++i) {
    write_text(dir / "f", mutate(good));
    try {
      load(dir / "f");
      ++outcome.read;
    } catch (const FormatError&) {
      ++outcome.refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "mutation " << i << " of seed " << seed << ": " << error.what();
    }
  }
  return outcome;
}

// Reads every byte, so that memory that was never written shows.
std::uint64_t sum_of(const HostArray& array) {
  std::uint64_t sum = 0;
  const auto* bytes = static_cast<const unsigned char*>(array.data());
  for (std::size_t i = 0; i < array.nbytes(); ++i) sum += bytes[i];
  return sum;
}

volatile std::uint64_t g_sink;

ArrayMap some_arrays(bool with_bfloat16) {
  ArrayMap arrays;
  for (const auto dtype : kAllDTypes)
    if (dtype != DType::bfloat16 || with_bfloat16)
      arrays[std::string(name_of(dtype))] = patterned({2, 3}, dtype);
  return arrays;
}

TEST(Mutations, OfSafetensors) {
  const TempDir dir;
  save_safetensors(dir / "f", some_arrays(true), {{"key", "value"}});
  const auto outcome = run(read_text(dir / "f"), 2000, 1, [](const std::string& path) {
    const SafetensorsFile file(path);
    for (const auto& name : file.names()) g_sink = sum_of(file.read(name));
  });
  EXPECT_GT(outcome.refused, 1000);
  EXPECT_GT(outcome.read, 50);
}

TEST(Mutations, OfNpy) {
  const TempDir dir;
  save_npy(dir / "f", patterned({3, 4, 5}, DType::float32));
  const auto outcome = run(read_text(dir / "f"), 2000, 2,
                           [](const std::string& path) { g_sink = sum_of(load_npy(path)); });
  EXPECT_GT(outcome.refused, 500);
  EXPECT_GT(outcome.read, 50);
}

TEST(Mutations, OfNpz) {
  const TempDir dir;
  for (const auto compression : {Compression::none, Compression::deflate}) {
    save_npz(dir / "f", some_arrays(false), compression);
    const auto outcome = run(read_text(dir / "f"), 1000, 3, [](const std::string& path) {
      for (const auto& [name, array] : load_npz(path)) g_sink = sum_of(array);
    });
    EXPECT_GT(outcome.refused, 500);
  }
}

TEST(Mutations, OfIdx) {
  std::string text("\0\0\x0d\2\0\0\0\x0a\0\0\0\x14", 12);
  text.resize(12 + 800, 'v');
  const auto load = [](const std::string& path) { g_sink = sum_of(load_idx(path)); };
  const auto plain = run(text, 1000, 4, load);
  EXPECT_GT(plain.refused, 300);
  EXPECT_GT(plain.read, 50);
  const auto packed = run(test::gzip(text), 1000, 5, load);
  EXPECT_GT(packed.refused, 300);
}

TEST(Mutations, OfPng) {
  const TempDir dir;
  for (const auto& shape : {Shape{16, 20, 3}, Shape{9, 9, 1}}) {
    save_png(dir / "f", patterned(shape, DType::uint8));
    const auto outcome = run(read_text(dir / "f"), 1000, 6, [](const std::string& path) {
      g_sink = sum_of(load_image(path, Channels::gray));
    });
    EXPECT_GT(outcome.refused, 500);
  }
}

std::uint32_t number_at(const std::string& text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

// Right checksums for the chunks that are left, so that the damage gets past them.
std::string with_checksums(std::string text) {
  for (std::size_t at = 8; at + 12 <= text.size();) {
    const std::size_t length = number_at(text, at);
    if (length > text.size() - at - 12) break;
    const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(text.data() + at + 4),
                             static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i)
      text[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
  return text;
}

TEST(Mutations, OfPngBehindTheChecksums) {
  const TempDir dir;
  const ImageLimits limits{.side = 2000, .pixels = 200'000};
  save_png(dir / "good", patterned({16, 20, 3}, DType::uint8));
  const auto outcome = run(read_text(dir / "good"), 2000, 9, [&](const std::string& path) {
    write_text(dir / "f", with_checksums(read_text(path)));
    g_sink = sum_of(load_image(dir / "f", Channels::rgb, limits));
  });
  EXPECT_GT(outcome.refused, 500);
  EXPECT_GT(outcome.read, 10);
}

TEST(Mutations, OfJpeg) {
  std::vector<unsigned char> pixels;
  for (int i = 0; i < 40 * 24 * 4; ++i) pixels.push_back(static_cast<unsigned char>(i * i / 50));
  // Sizes of 65535 on both sides are allowed by the format: the limit keeps this test quick.
  const ImageLimits limits{.side = 2000, .pixels = 200'000};
  for (const auto& kind :
       {test::JpegKind{3}, test::JpegKind{1}, test::JpegKind{3, true}, test::JpegKind{4, true}}) {
    const auto outcome = run(
        test::jpeg(40, 24, pixels, kind), 500, 7,
        [&](const std::string& path) { g_sink = sum_of(load_image(path, Channels::rgb, limits)); });
    EXPECT_GT(outcome.refused, 100);
    EXPECT_GT(outcome.read, 20);
  }
}

TEST(Mutations, OfCifar) {
  const std::string text(3073 * 3, '\1');
  run(text, 200, 8,
      [](const std::string& path) { g_sink = sum_of(load_cifar10_file(path).images); });
}

}  // namespace
}  // namespace netcl::io
