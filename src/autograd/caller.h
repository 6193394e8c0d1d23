// Who called an op: the place in the user's program, for messages.
#pragma once

#include <string>

namespace netcl::detail {

std::string describe_caller();

}  // namespace netcl::detail
