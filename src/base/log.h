// Diagnostics on standard error. Levels of NETCL_DEBUG: 1 devices, 2 kernel choice, 3 source,
// 4 launches. Never throws: a log line must not be the reason that a destructor ends a program.
#pragma once

#include <string>
#include <string_view>

#include "base/format.h"

namespace netcl::log {

int level();
void set_level(int level);  // overrides NETCL_DEBUG, for the command line and tests
inline bool enabled(int at) { return level() >= at; }

void warn(std::string_view message) noexcept;
// The same text is printed once in the life of the process.
void warn_once(std::string_view message) noexcept;
void write(std::string_view message) noexcept;

template <class... Args>
void debug(int at, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(at)) write(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace netcl::log
