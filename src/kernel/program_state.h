// What a built spec holds.
#pragma once

#include "kernel/program_cache.h"
#include "netcl/kernel.h"

namespace netcl::detail {

struct ProgramState {
  KernelSpec spec;
  Context context;
  std::shared_ptr<const CompiledProgram> compiled;
};

}  // namespace netcl::detail
