// Files.
#include "netcl/io.h"

#include "common.h"

namespace netcl::python {
namespace {

io::TensorMap tensor_map(const nb::dict& tensors) {
  io::TensorMap result;
  const CPUQueue host;
  for (auto [name, value] : tensors)
    result[nb::cast<std::string>(name)] =
        nb::isinstance<Tensor>(value) ? nb::cast<Tensor>(value) : tensor_from(value, host);
  return result;
}

nb::dict numpy_dict(const io::ArrayMap& arrays) {
  nb::dict result;
  for (const auto& [name, array] : arrays) result[name.c_str()] = to_numpy(array);
  return result;
}

io::ArrayMap array_map(const nb::dict& arrays) {
  io::ArrayMap result;
  for (auto [name, value] : arrays) result[nb::cast<std::string>(name)] = to_host_array(value);
  return result;
}

// Calls without the GIL, then makes the array.
template <class Read>
nb::object read_array(Read&& read) {
  HostArray array;
  {
    Unlocked now;
    array = read();
  }
  return to_numpy(array);
}

// Takes the values of an array or a tensor, then calls without the GIL.
template <class Write>
void write_array(nb::handle array, Write&& write) {
  const auto values = to_host_array(array);
  Unlocked now;
  write(values);
}

void bind_safetensors(nb::module_& m) {
  m.def(
      "save_safetensors",
      [](const Path& path, const nb::dict& tensors, const io::Metadata& metadata) {
        const auto map = tensor_map(tensors);
        Unlocked now;
        io::save_safetensors(path.string(), map, metadata);
      },
      "path"_a, "tensors"_a, "metadata"_a = io::Metadata{},
      "Tensors (or arrays) by name; the file is complete or absent.");
  m.def(
      "load_safetensors",
      [](const Path& path, const std::optional<QueueArg>& device) {
        const auto queue = queue_or_active(device);
        Unlocked now;
        return io::load_safetensors(path.string(), queue);
      },
      "path"_a, "device"_a = nb::none(), "All tensors of a file, by name.");
  nb::class_<io::SafetensorsFile>(m, "SafetensorsFile",
                                  "An open file; values are read when asked for.")
      .def(
          "__init__",
          [](io::SafetensorsFile* self, const Path& path) {
            new (self) io::SafetensorsFile(path.string());
          },
          "path"_a)
      .def("names", &io::SafetensorsFile::names, "Of all tensors.")
      .def("__contains__", &io::SafetensorsFile::contains)
      .def("shape", &io::SafetensorsFile::shape, "name"_a, "Of a tensor, without reading it.")
      .def("dtype", &io::SafetensorsFile::dtype, "name"_a, "Of a tensor, without reading it.")
      .def_prop_ro("metadata", &io::SafetensorsFile::metadata)
      .def(
          "read",
          [](const io::SafetensorsFile& file, const std::string& name,
             const std::optional<QueueArg>& device) {
            const auto queue = queue_or_active(device);
            Unlocked now;
            return file.read(name, queue);
          },
          "name"_a, "device"_a = nb::none(), "A tensor on a device.");
}

}  // namespace

void bind_io(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("io", "Files of tensors, datasets and images.");
  bind_safetensors(m);
  m.def(
      "load_npy",
      [](const Path& path) { return read_array([&] { return io::load_npy(path.string()); }); },
      "path"_a, "An array.");
  m.def(
      "save_npy",
      [](const Path& path, nb::handle array) {
        write_array(array, [&](const auto& values) { io::save_npy(path.string(), values); });
      },
      "path"_a, "array"_a, "An array or a tensor; the file is complete or absent.");
  m.def(
      "load_npz",
      [](const Path& path) {
        io::ArrayMap arrays;
        {
          Unlocked now;
          arrays = io::load_npz(path.string());
        }
        return numpy_dict(arrays);
      },
      "path"_a, "Arrays by name.");
  m.def(
      "save_npz",
      [](const Path& path, const nb::dict& arrays, bool compressed) {
        const auto map = array_map(arrays);
        Unlocked now;
        io::save_npz(path.string(), map,
                     compressed ? io::Compression::deflate : io::Compression::none);
      },
      "path"_a, "arrays"_a, "compressed"_a = false,
      "Arrays or tensors by name; the file is complete or absent.");
  m.def(
      "load_idx",
      [](const Path& path) { return read_array([&] { return io::load_idx(path.string()); }); },
      "path"_a, "The format of MNIST, plain or in gzip.");
  m.def(
      "load_image",
      [](const Path& path, bool gray) {
        return read_array([&] {
          return io::load_image(path.string(), gray ? io::Channels::gray : io::Channels::rgb);
        });
      },
      "path"_a, "gray"_a = false, "uint8 (height, width, channels) of a PNG or JPEG.");
  m.def(
      "save_png",
      [](const Path& path, nb::handle image) {
        write_array(image, [&](const auto& values) { io::save_png(path.string(), values); });
      },
      "path"_a, "image"_a,
      "uint8 (height, width), or (height, width, channels) with 1 or 3 channels.");
}

}  // namespace netcl::python
