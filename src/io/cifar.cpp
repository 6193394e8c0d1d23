// CIFAR's binary files: records of one or two label bytes and 32 x 32 pixels in three planes.
#include <cstring>

#include "base/check.h"
#include "base/file_stream.h"
#include "io/array_bytes.h"
#include "netcl/io.h"

namespace netcl::io {
namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;

CifarArrays load(const std::string& path, const char* op, std::size_t label_bytes, int classes) {
  const InputFile file(path);
  const auto record = label_bytes + kPixels;
  check<FormatError>(file.size() > 0 && file.size() % record == 0,
                     "[{}] {}: the file must be whole records of {} bytes: {} bytes", op, path,
                     record, file.size());
  const auto count = static_cast<std::int64_t>(file.size() / record);
  CifarArrays arrays{HostArray(Shape{count, 3, 32, 32}, DType::uint8),
                     HostArray(Shape{count}, DType::uint8)};
  // Records that together are about a megabyte.
  constexpr std::size_t kAtOnce = 256;
  std::vector<std::byte> records(kAtOnce * record);
  auto* pixels = static_cast<std::byte*>(arrays.images.data());
  auto labels = arrays.labels.values<std::uint8_t>();
  for (std::size_t i = 0; i < labels.size(); i += kAtOnce) {
    const auto some = std::min(kAtOnce, labels.size() - i);
    file.read(i * record, std::span(records).first(some * record));
    for (std::size_t j = 0; j < some; ++j) {
      const auto* from = records.data() + j * record;
      labels[i + j] = std::to_integer<std::uint8_t>(from[label_bytes - 1]);
      check<FormatError>(labels[i + j] < classes,
                         "[{}] {}: labels must be below {}: record {} has {}", op, path, classes,
                         i + j, labels[i + j]);
      std::memcpy(pixels + (i + j) * kPixels, from + label_bytes, kPixels);
    }
  }
  return arrays;
}

}  // namespace

CifarArrays load_cifar10_file(const std::string& path) {
  return load(path, "load_cifar10_file", 1, 10);
}

CifarArrays load_cifar100_file(const std::string& path) {
  return load(path, "load_cifar100_file", 2, 100);
}

}  // namespace netcl::io
