#include "data/planes.h"

namespace netcl::data_detail {
namespace {

HostArray transposed(const HostArray& from, std::int64_t rows, std::int64_t columns,
                     const Shape& shape) {
  HostArray result(shape, DType::uint8);
  const auto in = from.values<std::uint8_t>();
  const auto out = result.values<std::uint8_t>();
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
  for (std::size_t i = 0; i < height; ++i)
    for (std::size_t k = 0; k < width; ++k) out[k * height + i] = in[i * width + k];
  return result;
}

}  // namespace

HostArray to_planes(const HostArray& image) {
  const auto height = image.shape()[0], width = image.shape()[1], channels = image.shape()[2];
  return transposed(image, height * width, channels, Shape{channels, height, width});
}

HostArray to_pixels(const HostArray& planes) {
  const auto channels = planes.shape()[0], height = planes.shape()[1], width = planes.shape()[2];
  return transposed(planes, channels, height * width, Shape{height, width, channels});
}

}  // namespace netcl::data_detail
