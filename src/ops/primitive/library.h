// The macros and functions of OpenCL C text as functions of expressions.
#pragma once

#include <memory>
#include <string>

#include "netcl/kernel.h"
#include "ops/expression/expression.h"

namespace netcl {

struct CLibrary {
  std::shared_ptr<const ExpressionLibrary> functions;  // null: the text defines nothing
  // Its names could not be made unique: kernels must not put it together with other text.
  bool is_exclusive = false;
};

// What `text` defines besides kernels. In kernels the names get a prefix that comes from the text,
// so that two libraries of one kernel do not meet, nor a library and what netcl defines there.
// `before` goes unchanged in front of it.
CLibrary make_library(const std::string& text, const std::string& before);

// The text of a spec that a library is made from: its own preamble, the macros of its flags, and
// its source.
std::string library_text(const KernelSpec& spec);

}  // namespace netcl
