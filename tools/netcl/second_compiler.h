// A second process with the same command line, which compiles kernels that this one will need
// (netcl/compile_ahead.h).
#pragma once

#include <functional>

namespace netcl::cli {

// Called before the work begins. In that process: does the work without computing anything,
// compiles the kernels that it met, and returns true; it ends with the process that started it. In
// others: from now on the first kernel that the driver has to compile starts it; returns false.
bool compiled_ahead(const std::function<void()>& work);

}  // namespace netcl::cli
