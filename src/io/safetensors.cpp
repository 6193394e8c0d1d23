// safetensors files: a length, a JSON header, and the values of all tensors.
#include <functional>

#include "base/check.h"
#include "base/file_stream.h"
#include "base/process.h"
#include "io/array_bytes.h"
#include "io/quote.h"
#include "io/safetensors_header.h"
#include "io/with_path.h"
#include "netcl/io.h"

namespace netcl::io {
namespace {

using namespace io_detail;

constexpr std::uint64_t kLengthBytes = 8;

SafetensorsHeader read_header(const InputFile& file) {
  check<FormatError>(file.size() >= kLengthBytes,
                     "the file must have at least {} bytes for the header's length: {}",
                     kLengthBytes, file.size());
  std::uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  const auto rest = file.size() - kLengthBytes;
  check<FormatError>(length <= rest, "the header's length must fit the file of {} bytes: {}",
                     file.size(), length);
  check<FormatError>(length <= kMaxSafetensorsHeader, "the header may have {} bytes: {}",
                     kMaxSafetensorsHeader, length);
  std::string text(length, '\0');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  auto header = parse_safetensors_header(text, rest - length);
  for (auto& [name, entry] : header.entries) entry.offset += kLengthBytes + length;
  return header;
}

template <class Map>
void save(const std::string& path, const Map& values, const Metadata& metadata,
          const std::function<HostArray(const typename Map::mapped_type&)>& to_host) {
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  for (const auto& [name, value] : values)
    header.entries[name] = {value.dtype(), value.shape(), 0, value.nbytes()};
  const auto text = with_path<ArgumentError>(path, "save_safetensors",
                                             [&] { return make_safetensors_header(header); });
  remove_stale_temporaries(parent_directory(path));
  AtomicFile file(path);
  file.write(bytes_of(text));
  // In any order: each has its place. One at a time is on the host.
  for (const auto& [name, value] : values)
    file.write_at(text.size() + header.entries[name].offset, bytes_of(to_host(value)));
  file.commit();
}

}  // namespace

void save_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  process::require("save_safetensors");
  for (const auto& [name, tensor] : tensors)
    check<ArgumentError>(static_cast<bool>(tensor),
                         "[save_safetensors] the tensor must not be empty (default-made): {}",
                         quote(name));
  save(path, tensors, metadata, [](const Tensor& tensor) { return tensor.to_host(); });
}

void save_safetensors(const std::string& path, const ArrayMap& arrays, const Metadata& metadata) {
  for (const auto& [name, array] : arrays) require_array(array, "save_safetensors", quote(name));
  save(path, arrays, metadata, [](const HostArray& array) { return array; });
}

struct SafetensorsFile::State {
  explicit State(const std::string& path)
      : file(path),
        header(with_path<FormatError>(path, "safetensors", [&] { return read_header(file); })) {}
  InputFile file;
  SafetensorsHeader header;
};

SafetensorsFile::SafetensorsFile(const std::string& path) : state_(std::make_shared<State>(path)) {}

const std::string& SafetensorsFile::path() const { return state_->file.path(); }

const Metadata& SafetensorsFile::metadata() const { return state_->header.metadata; }

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : state_->header.entries) names.push_back(name);
  return names;
}

bool SafetensorsFile::contains(const std::string& name) const {
  return state_->header.entries.contains(name);
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = state_->header.entries.find(name);
  check<ArgumentError>(found != state_->header.entries.end(),
                       "[safetensors] {} has no such tensor: {}", path(), quote(name));
  return found->second;
}

HostArray SafetensorsFile::read(const std::string& name) const {
  const auto& wanted = entry(name);
  HostArray array(wanted.shape, wanted.dtype);
  state_->file.read(wanted.offset, bytes_of(array));
  settle_booleans(array);
  return array;
}

Tensor SafetensorsFile::read(const std::string& name, const Queue& queue) const {
  return Tensor::from_host(queue, read(name));
}

TensorMap load_safetensors(const std::string& path, const Queue& queue) {
  const SafetensorsFile file(path);
  TensorMap tensors;
  for (const auto& name : file.names()) tensors.emplace(name, file.read(name, queue));
  return tensors;
}

TensorMap load_safetensors(const std::string& path) {
  return load_safetensors(path, get_active_device().queue);
}

}  // namespace netcl::io
