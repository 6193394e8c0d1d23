// Derivatives of expressions, as expressions: so they have derivatives again, to any order.
#pragma once

#include "ops/expression/expression.h"

namespace netcl {

// d(expression) / d(variable) times a further variable `seed`, which the result has behind those of
// the expression. Rounding, comparisons and conditions count as flat: 0 where nothing else depends
// on the variable. ?: takes the derivative of the branch that is taken, whatever the other one is.
// The expression must call no functions of users (Expression::expanded).
Expression derivative(const Expression& expression, std::size_t variable, const std::string& seed);

}  // namespace netcl
