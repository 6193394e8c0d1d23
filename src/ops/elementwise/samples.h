// The samples of a row: sizes around the vector widths, broadcasting, numbers, special values.
#pragma once

#include "ops/elementwise/table.h"
#include "ops/op.h"

namespace netcl {

std::vector<OpSample> element_samples(const ElementRow& row);
// Sizes that stay in a cache, and sizes that do not.
std::vector<OpSample> element_tuning(const ElementRow& row);

}  // namespace netcl
