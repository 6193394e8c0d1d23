// The environment variables that netcl understands, as data: the documentation and `netcl env`
// are written from this table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netcl {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view default_value;  // "" when unset means "decided at run time"
  std::string_view effect;
};

std::span<const EnvironmentVariable> environment_variables();

// The value in force: the environment's, or the default.
std::string environment_value(std::string_view name);

// The environment of this process for another one, as "NAME=value": those of `changed` first, which
// take the place of their namesakes.
std::vector<std::string> environment_with(std::vector<std::string> changed);

// The table as Markdown, as in docs/environment.md.
std::string environment_markdown();

// Where netcl keeps what it may lose: NETCL_CACHE_DIR, else $XDG_CACHE_HOME/netcl, else
// ~/.cache/netcl. Empty when none of them is known.
std::string cache_directory();

}  // namespace netcl
