// For kernels that include image_rows.cl: OpenCL CPUs go through images by rows.
#pragma once

#include <cstdint>
#include <string>

#include "netcl/capabilities.h"
#include "netcl/dtype.h"

namespace netcl {

// How the rows of a result are shared out: work-items of `strip` columns and `block` rows.
struct ImageShares {
  std::int64_t strip = 1, block = 1, items = 1;
};
// `cost`: elements that are read or written for the strip of one row.
ImageShares share_image_rows(const ExtendedDeviceProfile& profile, std::int64_t rows,
                             std::int64_t width, std::int64_t strip, std::int64_t cost);

// The elements of a vector in these kernels.
std::int64_t image_row_lanes(const ExtendedDeviceProfile& profile, DType dtype);

// T, ACC, vector_macros, LOAD(p) and STORE(v, p) of VEC elements of T wherever they lie, PLACESV
// (int vectors), PICK(v, at): the lanes of v at these places, MASK and MASKV, the integers of a
// comparison of ACC and of ACCV, AS_MASK(v): an int vector as these, LANES: 0, 1, 2, ... of them.
std::string image_row_macros(const ExtendedDeviceProfile& profile, DType dtype);

}  // namespace netcl
