// A second process with the same command line, which compiles kernels that this one will need
// (netcl/compile_ahead.h).
#pragma once

#include <functional>

namespace netcl::cli {

// From now on the first kernel that the driver has to compile starts that process.
void start_second_compiler_when_needed();

// In that process: does the work without computing anything, then compiles the kernels that it met.
// It ends with the process that started it.
void compile_only(const std::function<void()>& work);

}  // namespace netcl::cli
