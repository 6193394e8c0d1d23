// The functions of float_math.cl in element programs, for CPUs: drivers' functions of vectors take
// them apart or come with a call for each.
#pragma once

#include <string>

#include "ops/elementwise/program.h"

namespace netcl {

// Their text, for elements and vectors of `vec` of them, where the program uses them.
std::string float_functions(const ElementProgram& program, int vec);
// A statement or a result that calls them in the place of the driver's.
std::string with_float_functions(const std::string& text, int vec);

}  // namespace netcl
