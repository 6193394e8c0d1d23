// Reads a file of arrays and writes it again, for tests/python/test_files.py:
//   file_convert <from> <to> [deflate]
// The formats follow from the names: .safetensors, .npz, .npy (one array, called "array"), .idx,
// .png.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "netcl/io.h"

namespace netcl {
namespace {

struct Content {
  io::ArrayMap arrays;
  io::Metadata metadata;
};

Content read(const std::string& path) {
  if (path.ends_with(".safetensors")) {
    const io::SafetensorsFile file(path);
    Content content{.arrays = {}, .metadata = file.metadata()};
    for (const auto& name : file.names()) content.arrays[name] = file.read(name);
    return content;
  }
  if (path.ends_with(".npz")) return {io::load_npz(path), {}};
  if (path.ends_with(".npy")) return {{{"array", io::load_npy(path)}}, {}};
  if (path.ends_with(".idx")) return {{{"array", io::load_idx(path)}}, {}};
  return {{{"array", io::load_image(path)}}, {}};
}

void write(const std::string& path, const Content& content, bool deflate) {
  if (path.ends_with(".safetensors"))
    io::save_safetensors(path, content.arrays, content.metadata);
  else if (path.ends_with(".npz"))
    io::save_npz(path, content.arrays, deflate ? io::Compression::deflate : io::Compression::none);
  else if (path.ends_with(".npy"))
    io::save_npy(path, content.arrays.at("array"));
  else
    io::save_png(path, content.arrays.at("array"));
}

}  // namespace
}  // namespace netcl

int main(int argc, char** argv) {
  try {
    if (argc < 3) throw std::runtime_error("usage: file_convert <from> <to> [deflate]");
    netcl::write(argv[2], netcl::read(argv[1]), argc > 3);
    return 0;
  } catch (const netcl::FormatError& error) {
    std::fprintf(stderr, "FormatError: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
