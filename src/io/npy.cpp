// Single arrays in npy files.
#include "base/check.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "io/array_bytes.h"
#include "io/npy_header.h"
#include "io/with_path.h"
#include "netcl/io.h"

namespace netcl::io {

using namespace io_detail;

HostArray load_npy(const std::string& path) {
  const InputFile file(path);
  std::uint64_t at = 0;
  const auto read = [&](std::span<std::byte> to) {
    check<FormatError>(to.size() <= file.size() - at,
                       "the file must have {} bytes from {} on: it has {}", to.size(), at,
                       file.size() - at);
    file.read(at, to);
    at += to.size();
  };
  const auto check_size = [&](std::uint64_t bytes) {
    check<FormatError>(bytes == file.size() - at, "{} bytes of values must follow the header: {}",
                       bytes, file.size() - at);
  };
  return with_path<FormatError>(path, "load_npy", [&] { return read_npy(read, check_size); });
}

void save_npy(const std::string& path, const HostArray& array) {
  require_array(array, "save_npy", path);
  const auto header = make_npy_header(array, "save_npy");
  remove_stale_temporaries(parent_directory(path));
  AtomicFile file(path);
  file.write(bytes_of(header));
  file.write(bytes_of(array));
  file.commit();
}

}  // namespace netcl::io
