// Comparing results with the reference.
#pragma once

#include <string>

#include "ops/op.h"

namespace netcl::selftest_detail {

// Empty when every element is within the tolerance, NaN where the reference is NaN and infinite
// where it is; else the worst element, what was expected and how much was allowed.
std::string compare(const HostArray& actual, const RefArray& expected, const Tolerance& tolerance);

double epsilon(DType dtype);  // the distance from 1 to the next number; 0 for integers

}  // namespace netcl::selftest_detail
