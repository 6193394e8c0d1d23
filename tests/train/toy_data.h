// A small dataset on disk in the form of MNIST: bright squares whose place is the class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/temp_dir.h"

namespace netcl::test {

inline std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 255);
  return text;
}

inline void write_toy_split(const std::string& directory, const std::string& prefix,
                            std::uint32_t count, std::uint32_t side, unsigned classes,
                            unsigned seed) {
  std::string images = big_endian(0x803) + big_endian(count) + big_endian(side) + big_endian(side);
  std::string labels = big_endian(0x801) + big_endian(count);
  std::uint32_t random = seed * 2654435761u + 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const unsigned label = i % classes;
    labels += static_cast<char>(label);
    for (std::uint32_t y = 0; y < side; ++y)
      for (std::uint32_t x = 0; x < side; ++x) {
        random = random * 1664525u + 1013904223u;
        const bool bright = x / 3 == label && y >= side / 4;
        images += static_cast<char>((random >> 24) / 4 + (bright ? 150 : 0));
      }
  }
  write_text(directory + "/" + prefix + "-images-idx3-ubyte", images);
  write_text(directory + "/" + prefix + "-labels-idx1-ubyte", labels);
}

struct ToyData {
  explicit ToyData(std::uint32_t train = 300, std::uint32_t test = 60, std::uint32_t side = 12,
                   unsigned classes = 4) {
    write_toy_split(dir.path().string(), "train", train, side, classes, 1);
    write_toy_split(dir.path().string(), "t10k", test, side, classes, 2);
  }
  std::string path() const { return dir.path().string(); }
  TempDir dir;
};

}  // namespace netcl::test
