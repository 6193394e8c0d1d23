// Transforms of images (channels, height, width) on the host.
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "netcl/data.h"

namespace netcl::data {
namespace {

void require_image(const HostArray& image, const char* op) {
  check<ShapeError>(image.shape().rank() == 3,
                    "[{}] the image must be (channels, height, width): {}", op,
                    image.shape().to_string());
}

// The parts that pixels are moved in; the dtype does not matter.
struct Plane {
  explicit Plane(const HostArray& image)
      : channels(image.shape()[0]),
        height(image.shape()[1]),
        width(image.shape()[2]),
        element(size_of(image.dtype())) {}
  std::size_t offset(std::int64_t c, std::int64_t y, std::int64_t x) const {
    return static_cast<std::size_t>((c * height + y) * width + x) * element;
  }
  std::int64_t channels, height, width;
  std::size_t element;
};

HostArray flip(const HostArray& image) {
  HostArray result(image.shape(), image.dtype());
  const Plane plane(image);
  const auto* from = static_cast<const std::byte*>(image.data());
  auto* to = static_cast<std::byte*>(result.data());
  for (std::int64_t row = 0; row < plane.channels * plane.height; ++row)
    for (std::int64_t x = 0; x < plane.width; ++x)
      std::memcpy(to + plane.offset(0, row, x), from + plane.offset(0, row, plane.width - 1 - x),
                  plane.element);
  return result;
}

// The part from (top, left) on, zero where it is outside.
HostArray cut(const HostArray& image, std::int64_t top, std::int64_t left, std::int64_t height,
              std::int64_t width) {
  const Plane source(image);
  HostArray result(Shape{source.channels, height, width}, image.dtype());
  const Plane target(result);
  const auto* from = static_cast<const std::byte*>(image.data());
  auto* to = static_cast<std::byte*>(result.data());
  std::memset(to, 0, result.nbytes());
  const auto first_x = std::max<std::int64_t>(0, -left);
  const auto last_x = std::min(width, source.width - left);
  if (last_x <= first_x) return result;
  const auto bytes = static_cast<std::size_t>(last_x - first_x) * source.element;
  for (std::int64_t c = 0; c < source.channels; ++c)
    for (std::int64_t y = 0; y < height; ++y)
      if (top + y >= 0 && top + y < source.height)
        std::memcpy(to + target.offset(c, y, first_x),
                    from + source.offset(c, top + y, left + first_x), bytes);
  return result;
}

}  // namespace

Transform to_float() {
  return [](const HostArray& image, RandomStream&) {
    if (image.dtype() == DType::float32) return image;
    check<DtypeError>(image.dtype() == DType::uint8, "[to_float] the dtype must be uint8: {}",
                      name_of(image.dtype()));
    HostArray result(image.shape(), DType::float32);
    const auto from = image.values<std::uint8_t>();
    const auto to = result.values<float>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(from[i]) / 255.0f;
    return result;
  };
}

Transform normalise(std::vector<float> mean, std::vector<float> deviation) {
  check<ArgumentError>(mean.size() == deviation.size() && !mean.empty(),
                       "[normalise] a mean and a deviation per channel are needed: {} and {}",
                       mean.size(), deviation.size());
  for (const auto value : deviation)
    check<ArgumentError>(value > 0 && std::isfinite(value),
                         "[normalise] deviations must be positive: {}", value);
  return [mean = std::move(mean), deviation = std::move(deviation)](const HostArray& image,
                                                                    RandomStream&) {
    check<DtypeError>(image.dtype() == DType::float32,
                      "[normalise] the dtype must be float32 (put to_float in front): {}",
                      name_of(image.dtype()));
    check<ShapeError>(
        !image.shape().empty() && image.shape()[0] == static_cast<std::int64_t>(mean.size()),
        "[normalise] the image must have {} channels: {}", mean.size(), image.shape().to_string());
    HostArray result(image.shape(), DType::float32);
    const auto from = image.values<float>();
    const auto to = result.values<float>();
    const auto plane = to.size() / mean.size();
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = (from[i] - mean[i / plane]) / deviation[i / plane];
    return result;
  };
}

Transform random_horizontal_flip(double probability) {
  check<ArgumentError>(probability >= 0 && probability <= 1,
                       "[random_horizontal_flip] the probability must be in [0, 1]: {}",
                       probability);
  return [probability](const HostArray& image, RandomStream& random) {
    require_image(image, "random_horizontal_flip");
    return random.uniform() < probability ? flip(image) : image;
  };
}

Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding) {
  constexpr std::int64_t kMost = 1 << 20;
  check<ArgumentError>(
      height > 0 && width > 0 && padding >= 0 && height <= kMost && width <= kMost &&
          padding <= kMost,
      "[random_crop] sizes must be in [1, {}] and the padding in [0, {}]: {} x {}, "
      "{}",
      kMost, kMost, height, width, padding);
  return [=](const HostArray& image, RandomStream& random) {
    require_image(image, "random_crop");
    const auto free_y = image.shape()[1] + 2 * padding - height;
    const auto free_x = image.shape()[2] + 2 * padding - width;
    check<ShapeError>(free_y >= 0 && free_x >= 0,
                      "[random_crop] the part must fit the padded image: {} x {} of {} with {} "
                      "around",
                      height, width, image.shape().to_string(), padding);
    const auto top = random.below(static_cast<std::uint32_t>(free_y + 1));
    const auto left = random.below(static_cast<std::uint32_t>(free_x + 1));
    return cut(image, top - padding, left - padding, height, width);
  };
}

HostArray apply(const std::vector<Transform>& transforms, HostArray image, std::uint64_t seed,
                std::uint64_t epoch, std::uint64_t sample) {
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    RandomStream random(seed, epoch, sample, static_cast<std::uint32_t>(i));
    image = transforms[i](image, random);
  }
  return image;
}

}  // namespace netcl::data
