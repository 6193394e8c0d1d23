// Names from files in messages: quoted, escaped and of bounded length, whatever the file holds.
#pragma once

#include <string>
#include <string_view>

namespace netcl::io_detail {

std::string quote(std::string_view text);

}  // namespace netcl::io_detail
