// Resizing by a triangle filter that is widened when the image shrinks, so that no pixel is lost.
// First along rows, then along columns.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "netcl/data.h"

namespace netcl::data {
namespace {

// The source pixels behind one target pixel, and how much each counts.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> make_taps(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  std::vector<Taps> taps(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const auto first =
        std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(center - radius)));
    const auto last =
        std::min<std::int64_t>(from - 1, static_cast<std::int64_t>(std::floor(center + radius)));
    auto& [start, weights] = taps[static_cast<std::size_t>(i)];
    start = first;
    double sum = 0;
    std::vector<double> exact;
    for (std::int64_t j = first; j <= last; ++j) {
      exact.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(j) - center) / radius));
      sum += exact.back();
    }
    for (const auto weight : exact) weights.push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

}  // namespace

HostArray resize_image(const HostArray& image, std::int64_t height, std::int64_t width) {
  const auto& shape = image.shape();
  check<DtypeError>(image.dtype() == DType::uint8, "[resize_image] the dtype must be uint8: {}",
                    name_of(image.dtype()));
  check<ShapeError>(shape.rank() == 3 && shape.numel() > 0 && height > 0 && width > 0,
                    "[resize_image] images (channels, height, width) with pixels are needed: {} to "
                    "{} x {}",
                    shape.to_string(), height, width);
  if (shape[1] == height && shape[2] == width) return image;
  HostArray result(Shape{shape[0], height, width}, DType::uint8);
  const auto columns = make_taps(shape[2], width);
  const auto rows = make_taps(shape[1], height);
  const auto old_height = shape[1], old_width = shape[2];
  std::vector<float> narrowed(static_cast<std::size_t>(old_height * width));
  for (std::int64_t c = 0; c < shape[0]; ++c) {
    const auto* from = image.values<std::uint8_t>().data() + c * old_height * old_width;
    auto* to = result.values<std::uint8_t>().data() + c * height * width;
    for (std::int64_t y = 0; y < old_height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        const auto& [first, weights] = columns[static_cast<std::size_t>(x)];
        float sum = 0;
        for (std::size_t i = 0; i < weights.size(); ++i)
          sum += weights[i] * from[y * old_width + first + static_cast<std::int64_t>(i)];
        narrowed[static_cast<std::size_t>(y * width + x)] = sum;
      }
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        const auto& [first, weights] = rows[static_cast<std::size_t>(y)];
        float sum = 0;
        for (std::size_t i = 0; i < weights.size(); ++i)
          sum += weights[i] * narrowed[static_cast<std::size_t>(
                                  (first + static_cast<std::int64_t>(i)) * width + x)];
        to[y * width + x] = static_cast<std::uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
      }
  }
  return result;
}

}  // namespace netcl::data
