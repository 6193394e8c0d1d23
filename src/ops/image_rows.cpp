#include "ops/image_rows.h"

#include <algorithm>

#include "base/format.h"
#include "ops/kernels.h"
#include "ops/memory_hints.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

constexpr std::int64_t kBlockElements = 16384;  // of a work-item
constexpr std::int64_t kBlocksPerUnit = 8;
// Compilers for processors with longer ones may still split them, and then pick lanes one by one.
constexpr std::int64_t kVectorBytes = 32;

}  // namespace

ImageShares share_image_rows(const ExtendedDeviceProfile& profile, std::int64_t rows,
                             std::int64_t width, std::int64_t strip, std::int64_t cost) {
  ImageShares shares{strip};
  const auto strips = static_cast<std::int64_t>(ceil_div(width, strip));
  const auto wanted = kBlocksPerUnit * static_cast<std::int64_t>(profile.compute_units);
  const auto worth = std::max<std::int64_t>(kBlockElements / std::max<std::int64_t>(cost, 1), 1);
  shares.block = std::clamp<std::int64_t>(rows * strips / wanted, 1, worth);
  shares.items =
      std::max<std::int64_t>(static_cast<std::int64_t>(ceil_div(rows, shares.block)), 1) * strips;
  return shares;
}

std::int64_t image_row_lanes(const ExtendedDeviceProfile& profile, DType dtype) {
  const auto compute = compute_dtype(dtype);
  return std::min(unit_lanes(profile, compute),
                  kVectorBytes / static_cast<std::int64_t>(size_of(compute)));
}

std::string image_row_macros(const ExtendedDeviceProfile& profile, DType dtype) {
  const auto compute = compute_dtype(dtype);
  const auto lanes = image_row_lanes(profile, dtype);
  const auto mask = compute == DType::float64 ? "long" : "int";
  std::vector<std::string> picked, numbers;
  for (std::int64_t l = 0; l < lanes; ++l) {
    picked.push_back(fmt::format("(v)[(at).s{:x}]", l));
    numbers.push_back(std::to_string(l));
  }
  auto text = t_and_acc(dtype) + vector_macros(dtype, lanes) +
              define("PLACESV", fmt::format("int{}", lanes)) + define("MASK", mask) +
              define("MASKV", fmt::format("{}{}", mask, lanes)) +
              define("AS_MASK(v)", fmt::format("convert_{}{}(v)", mask, lanes)) +
              define("LANES", fmt::format("(({}{})({}))", mask, lanes, join(numbers, ", "))) +
              define("PICK(v, at)", fmt::format("((ACCV)({}))", join(picked, ", ")));
  const auto type =
      dtype == DType::float16 ? std::string("halves") : std::string(compute_type(dtype));
  if (dtype != DType::float16) text += loose_vectors(type, lanes);
  return text + define("LOAD(p)", fmt::format("load_{}{}(p)", type, lanes)) +
         define("STORE(v, p)", fmt::format("store_{}{}(v, p)", type, lanes));
}

}  // namespace netcl
