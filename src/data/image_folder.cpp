// A folder of images per class.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/check.h"
#include "data/planes.h"
#include "netcl/data.h"

namespace netcl::data {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  if (path.filename().string().starts_with('.')) return false;
  auto suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg";
}

// File system errors as ours, with the path in them.
template <class F>
auto reading(const std::string& path, F&& f) {
  try {
    return f();
  } catch (const fs::filesystem_error& error) {
    fail<FileError>("[ImageFolder] the directory must be readable: {}: {}", path,
                    error.code().message());
  }
}

std::vector<std::string> class_names(const std::string& directory) {
  return reading(directory, [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) {
      auto name = entry.path().filename().string();
      if (entry.is_directory() && !name.starts_with('.')) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
  });
}

std::vector<std::string> images_below(const std::string& directory) {
  return reading(directory, [&] {
    std::vector<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(directory))
      if (is_image(entry.path()) && entry.is_regular_file()) paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    return paths;
  });
}

}  // namespace

ImageFolder::ImageFolder(const std::string& directory, const Options& options)
    : options_(options), classes_(class_names(directory)) {
  constexpr std::int64_t kMost = 1 << 15;
  const bool both =
      options.height > 0 && options.width > 0 && options.height <= kMost && options.width <= kMost;
  check<ArgumentError>(both || (options.height == 0 && options.width == 0),
                       "[ImageFolder] height and width must both be 0 or both in [1, {}]: {} x {}",
                       kMost, options.height, options.width);
  check<FormatError>(!classes_.empty(),
                     "[ImageFolder] {}: a folder per class is needed: there is none", directory);
  for (std::size_t label = 0; label < classes_.size(); ++label) {
    const auto folder = (fs::path(directory) / classes_[label]).string();
    auto paths = images_below(folder);
    check<FormatError>(!paths.empty(),
                       "[ImageFolder] {}: a class must have images (.png, .jpg, .jpeg): none",
                       folder);
    for (auto& path : paths) files_.emplace_back(std::move(path), static_cast<std::int64_t>(label));
  }
}

Sample ImageFolder::sample(std::int64_t index) const {
  check<ArgumentError>(index >= 0 && index < size(), "[sample] the index must be in [0, {}): {}",
                       size(), index);
  const auto& [path, label] = files_[static_cast<std::size_t>(index)];
  const auto channels = options_.gray ? io::Channels::gray : io::Channels::rgb;
  auto image = data_detail::to_planes(io::load_image(path, channels, options_.limits));
  if (options_.height > 0) image = resize_image(image, options_.height, options_.width);
  return {std::move(image), label};
}

std::string ImageFolder::describe(std::int64_t index) const {
  if (index < 0 || index >= size()) return Dataset::describe(index);
  return Dataset::describe(index) + " (" + files_[static_cast<std::size_t>(index)].first + ")";
}

}  // namespace netcl::data
