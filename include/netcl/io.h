// Files: tensors (safetensors, npy, npz), datasets' own formats (IDX, CIFAR) and images (PNG,
// JPEG).
//
// Files are not trusted: whatever is in them, reading gives the values or a FormatError that names
// the file and the numbers, and allocates nothing that the file's size does not justify. Writing is
// complete or absent: a full disk or a killed process leaves the previous file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/tensor.h"

namespace netcl::io {

using TensorMap = std::map<std::string, Tensor>;
using ArrayMap = std::map<std::string, HostArray>;
using Metadata = std::map<std::string, std::string>;

// ---- safetensors: all dtypes of netcl
void save_safetensors(const std::string& path, const TensorMap& tensors,
                      const Metadata& metadata = {});
void save_safetensors(const std::string& path, const ArrayMap& arrays,
                      const Metadata& metadata = {});
TensorMap load_safetensors(const std::string& path, const Queue& queue);
TensorMap load_safetensors(const std::string& path);  // to the thread's active device

// An open file: the header is read and checked, the values are read when they are asked for.
// Copies share the file; any number of threads may read.
class SafetensorsFile {
 public:
  struct Entry {
    DType dtype = DType::float32;
    Shape shape;
    std::uint64_t offset = 0;  // of the first byte in the file
    std::uint64_t bytes = 0;
  };

  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const;
  std::vector<std::string> names() const;  // sorted
  bool contains(const std::string& name) const;
  const Entry& entry(const std::string& name) const;  // ArgumentError for a name that is not there
  const Shape& shape(const std::string& name) const { return entry(name).shape; }
  DType dtype(const std::string& name) const { return entry(name).dtype; }
  const Metadata& metadata() const;
  HostArray read(const std::string& name) const;
  Tensor read(const std::string& name, const Queue& queue) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// ---- NumPy's npy (versions 1 to 3) and npz. All dtypes but bfloat16, which NumPy does not have.
HostArray load_npy(const std::string& path);  // Fortran order is turned into C order
void save_npy(const std::string& path, const HostArray& array);
ArrayMap load_npz(const std::string& path);  // names without ".npy", stored or deflated
enum class Compression { none, deflate };
void save_npz(const std::string& path, const ArrayMap& arrays,
              Compression compression = Compression::none);

// ---- IDX, the format of MNIST; plain or in gzip, which is recognised by its first bytes. The
// format's 16-bit integers become int32.
HostArray load_idx(const std::string& path);

// ---- CIFAR's binary files
struct CifarArrays {
  HostArray images;  // uint8 (N, 3, 32, 32)
  HostArray labels;  // uint8 (N); of CIFAR-100 the fine ones
};
CifarArrays load_cifar10_file(const std::string& path);
CifarArrays load_cifar100_file(const std::string& path);

// ---- images
enum class Channels { as_stored, gray, rgb };  // alpha is dropped; as_stored gives 1 or 3 channels
struct ImageLimits {
  std::uint64_t file_bytes = std::uint64_t{256} << 20;
  std::int64_t side = 32768;
  std::int64_t pixels = std::int64_t{1} << 27;
};
// uint8 (height, width, channels). The kind of file is recognised by its first bytes.
HostArray load_image(const std::string& path, Channels channels = Channels::rgb,
                     const ImageLimits& limits = {});
// uint8 (height, width), or (height, width, channels) with 1 or 3 channels.
void save_png(const std::string& path, const HostArray& image);
std::vector<std::byte> encode_png(const HostArray& image);  // the same, in memory

}  // namespace netcl::io
