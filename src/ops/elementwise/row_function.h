// The expressions of the table as the fusing compiler sees them.
#pragma once

#include <memory>

#include "ops/element_function.h"
#include "ops/elementwise/table.h"

namespace netcl {

// Expression `code` of a row, whose inputs it calls `names`.
std::shared_ptr<const ElementFunction> row_function(const ElementRow& row, const ElementCode& code,
                                                    const std::vector<ElementName>& names);

}  // namespace netcl
