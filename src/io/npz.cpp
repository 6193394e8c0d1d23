// npz: a zip archive with one npy member per array.
#include "base/check.h"
#include "io/array_bytes.h"
#include "io/npy_header.h"
#include "io/quote.h"
#include "io/with_path.h"
#include "io/zip_file.h"
#include "netcl/io.h"

namespace netcl::io {
namespace {

using namespace io_detail;

constexpr std::string_view kSuffix = ".npy";

HostArray read_member(const ZipReader& archive, std::size_t index) {
  const auto total = archive.members()[index].bytes;
  HostArray array;
  archive.read(index, [&](const ZipReader::Read& read) {
    std::uint64_t used = 0;
    const auto counted = [&](std::span<std::byte> to) {
      read(to);
      used += to.size();
    };
    const auto check_size = [&](std::uint64_t bytes) {
      check<FormatError>(used <= total && bytes == total - used,
                         "{} bytes of values must follow the header: the member has {}", bytes,
                         total - std::min(used, total));
    };
    array = read_npy(counted, check_size);
  });
  return array;
}

ArrayMap read_all(const std::string& path) {
  const ZipReader archive(path);
  ArrayMap arrays;
  for (std::size_t i = 0; i < archive.members().size(); ++i) {
    auto name = archive.members()[i].name;
    check<FormatError>(name.ends_with(kSuffix), "members must be npy files: {}", quote(name));
    name.resize(name.size() - kSuffix.size());
    check<FormatError>(!arrays.contains(name), "a name may appear once: {}", quote(name));
    try {
      arrays.emplace(name, read_member(archive, i));
    } catch (const FormatError& error) {
      fail<FormatError>("array {}: {}", quote(name), error.what());
    }
  }
  return arrays;
}

}  // namespace

ArrayMap load_npz(const std::string& path) {
  return with_path<FormatError>(path, "load_npz", [&] { return read_all(path); });
}

void save_npz(const std::string& path, const ArrayMap& arrays, Compression compression) {
  std::vector<ZipMember> members;
  for (const auto& [name, array] : arrays) {
    require_array(array, "save_npz", quote(name));
    check<ArgumentError>(!name.empty() && name.find('\0') == std::string::npos,
                         "[save_npz] a name must be text: {}", quote(name));
    members.push_back(
        {name + std::string(kSuffix), make_npy_header(array, "save_npz"), bytes_of(array)});
  }
  remove_stale_temporaries(parent_directory(path));
  AtomicFile file(path);
  write_zip(file, members, compression);
  file.commit();
}

}  // namespace netcl::io
