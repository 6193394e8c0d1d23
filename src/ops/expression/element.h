// Expressions as element functions, for kernels and for the host.
#pragma once

#include <memory>

#include "ops/element_function.h"
#include "ops/expression/expression.h"

namespace netcl {

// `scalars` are the expression's parameters. Where the expression calls users' functions that the
// host cannot evaluate, run() is an ArgumentError of `name` that says why.
std::shared_ptr<const ElementFunction> expression_element(const std::string& name,
                                                          const Expression& expression);

}  // namespace netcl
