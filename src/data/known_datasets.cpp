// The folders of MNIST and CIFAR as they are published, and finding out which one a folder is.
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "netcl/data.h"

namespace netcl::data {
namespace {

namespace fs = std::filesystem;

std::string in(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void require_directory(const std::string& directory, const char* op) {
  check<FileError>(is_directory(directory), "[{}] the directory must exist: {}", op, directory);
}

// ---- MNIST

std::string mnist_name(Split split, const char* rest) {
  return std::string(split == Split::train ? "train" : "t10k") + rest;
}

std::vector<std::string> mnist_names(Split split) {
  return {mnist_name(split, "-images-idx3-ubyte"), mnist_name(split, "-labels-idx1-ubyte")};
}

// The file of this name: also with ".gz", and with the dot that some archives have instead of "-".
std::string find_mnist_file(const std::string& directory, const std::string& name) {
  auto dotted = name;
  dotted[dotted.find("-idx")] = '.';
  for (const auto& form : {name, name + ".gz", dotted, dotted + ".gz"})
    if (is_file(in(directory, form))) return in(directory, form);
  return {};
}

// ---- CIFAR

std::vector<std::string> cifar10_names(Split split) {
  if (split == Split::test) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i) names.push_back("data_batch_" + std::to_string(i) + ".bin");
  return names;
}

std::string cifar100_name(Split split) { return split == Split::train ? "train.bin" : "test.bin"; }

// The lines of a list of class names; the published files end with empty lines.
std::vector<std::string> read_names(const std::string& path, std::size_t count) {
  const auto bytes = read_file_if_exists(path, 1 << 16);
  if (!bytes) return {};
  std::vector<std::string> names(1);
  for (const auto byte : *bytes) {
    const auto c = static_cast<char>(byte);
    if (c == '\n')
      names.emplace_back();
    else if (c != '\r')
      names.back() += c;
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  check<FormatError>(names.size() == count,
                     "[load_cifar] {}: {} names are needed, one per line: {}", path, count,
                     names.size());
  return names;
}

std::vector<std::string> numbers(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::shared_ptr<ArrayDataset> make_cifar(const std::vector<io::CifarArrays>& parts,
                                         std::vector<std::string> names, std::size_t classes) {
  std::int64_t count = 0;
  for (const auto& part : parts) count += part.labels.numel();
  HostArray images(Shape{count, 3, 32, 32}, DType::uint8), labels(Shape{count}, DType::uint8);
  auto* image = static_cast<std::byte*>(images.data());
  auto* label = static_cast<std::byte*>(labels.data());
  for (const auto& part : parts) {
    std::memcpy(image, part.images.data(), part.images.nbytes());
    std::memcpy(label, part.labels.data(), part.labels.nbytes());
    image += part.images.nbytes();
    label += part.labels.nbytes();
  }
  if (names.empty()) names = numbers(classes);
  return std::make_shared<ArrayDataset>(std::move(images), labels, std::move(names));
}

bool looks_like_mnist(const std::string& directory) {
  for (const auto split : {Split::train, Split::test})
    for (const auto& name : mnist_names(split))
      if (!find_mnist_file(directory, name).empty()) return true;
  return false;
}

bool looks_like_cifar(const std::string& directory) {
  return is_file(in(directory, "data_batch_1.bin")) || is_file(in(directory, "test_batch.bin")) ||
         is_file(in(directory, "train.bin")) || is_file(in(directory, "test.bin"));
}

std::string find_split_folder(const std::string& directory, Split split) {
  const std::vector<std::string> names =
      split == Split::train ? std::vector<std::string>{"train"}
                            : std::vector<std::string>{"test", "val", "valid", "validation"};
  for (const auto& name : names)
    if (is_directory(in(directory, name))) return in(directory, name);
  return {};
}

}  // namespace

std::shared_ptr<ArrayDataset> load_mnist(const std::string& directory, Split split) {
  require_directory(directory, "load_mnist");
  std::vector<std::string> paths, missing;
  for (const auto& name : mnist_names(split)) {
    paths.push_back(find_mnist_file(directory, name));
    if (paths.back().empty()) missing.push_back(name);
  }
  check<FileError>(missing.empty(), "[load_mnist] {}: these files are missing, plain or as .gz: {}",
                   directory, join(missing, ", "));
  const auto images = io::load_idx(paths[0]), labels = io::load_idx(paths[1]);
  check<FormatError>(images.dtype() == DType::uint8 && images.shape().rank() == 3,
                     "[load_mnist] {}: images must be uint8 (N, height, width): {} {}", paths[0],
                     name_of(images.dtype()), images.shape().to_string());
  check<FormatError>(labels.dtype() == DType::uint8 && labels.shape().rank() == 1,
                     "[load_mnist] {}: labels must be uint8 (N): {} {}", paths[1],
                     name_of(labels.dtype()), labels.shape().to_string());
  check<FormatError>(labels.shape()[0] == images.shape()[0],
                     "[load_mnist] {}: {} labels are needed for the images of {}: {}", paths[1],
                     images.shape()[0], paths[0], labels.shape()[0]);
  return std::make_shared<ArrayDataset>(images, labels);
}

std::shared_ptr<ArrayDataset> load_cifar(const std::string& directory, Split split) {
  require_directory(directory, "load_cifar");
  const auto names = cifar10_names(split);
  std::vector<std::string> missing;
  for (const auto& name : names)
    if (!is_file(in(directory, name))) missing.push_back(name);
  if (missing.empty()) {
    std::vector<io::CifarArrays> parts;
    for (const auto& name : names) parts.push_back(io::load_cifar10_file(in(directory, name)));
    return make_cifar(parts, read_names(in(directory, "batches.meta.txt"), 10), 10);
  }
  const auto name100 = cifar100_name(split);
  check<FileError>(is_file(in(directory, name100)),
                   "[load_cifar] {}: these files of CIFAR-10 are missing: {}; or {} of CIFAR-100",
                   directory, join(missing, ", "), name100);
  return make_cifar({io::load_cifar100_file(in(directory, name100))},
                    read_names(in(directory, "fine_label_names.txt"), 100), 100);
}

std::shared_ptr<Dataset> open_dataset(const std::string& directory, Split split,
                                      const ImageFolder::Options& options) {
  require_directory(directory, "open_dataset");
  if (looks_like_mnist(directory)) return load_mnist(directory, split);
  if (looks_like_cifar(directory)) return load_cifar(directory, split);
  const auto folder = find_split_folder(directory, split);
  check<FileError>(
      !folder.empty(),
      "[open_dataset] {}: there is no dataset: looked for {} (MNIST; also .gz), {} (CIFAR-10), {} "
      "(CIFAR-100) and a folder {} with a folder of images per class",
      directory, join(mnist_names(split), " and "), join(cifar10_names(split), ", "),
      cifar100_name(split), split == Split::train ? "train" : "test, val, valid or validation");
  return std::make_shared<ImageFolder>(folder, options);
}

}  // namespace netcl::data
